"""The simulated network: connections whose messages arrive in order, late, or never.

A connection is one direction between two processes of a call, as in TCP: messages keep their order.
Different connections overtake each other. A partition holds the messages of one direction back. If
connections stall, only messages of the present connections are held back, and not those of later
ones.

The kernel delivers what a process sent before it was killed, up to a drawn message of each
connection: a reset may discard the last ones. Then it tells the other side that the connection has
ended.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from simulation.loop import SimulatedLoop
from simulation.process import OUTSIDE, Process

_USUAL_SECONDS, _SLOWEST_SECONDS = 0.0005, 0.3
_GAP = 1e-6
"""Seconds between two messages of a connection."""
_SLOW_SHARE = 0.01
"""Share of messages with a long delay, as after a lost packet."""
_RESET_SHARE = 0.25
"""Share of the messages of an ended process that a reset discards, with all later ones."""


@dataclass(slots=True)
class _Direction:
    """Messages of one connection in one direction."""

    last_arrival: float = 0.0


class Part(Enum):
    """What a message is in its call."""

    REQUEST = "request"
    REPLY = "reply"
    CANCEL = "cancel"


@dataclass(slots=True)
class Message:
    """A message on its way."""

    source: Process
    target: Process
    label: str
    deliver: Callable[[], None]
    lost: Callable[[], None]
    """Called in the source if the target ends before the message arrives."""
    method: str = ""
    """Name of the called method."""
    part: Part = Part.REQUEST
    shards: int = 1
    """Number of shards of the call."""
    ends: bool = False
    """Whether this is the end of a connection, which the kernel sends after its process."""
    was_held: bool = False
    """Whether it was held back on its way, so that no kernel can discard it."""


@dataclass(slots=True)
class Network:
    """Delivers messages between processes."""

    loop: SimulatedLoop
    rng: Random
    record: Callable[[str], None]
    """Records a line of the timeline."""
    cut: set[tuple[str, str]] = field(default_factory=set)
    """Directions that deliver nothing now, by the names of source and target."""
    stalled: set[tuple[str, str, str]] = field(default_factory=set)
    """Connections that deliver nothing now, with the names of source and target."""
    slow: dict[str, float] = field(default_factory=dict)
    """Additional seconds of messages to and from a process, by its name."""
    dark: set[str] = field(default_factory=set)
    """Names of processes whose machine is without power: nobody learns that they ended."""
    messages: int = 0
    _directions: defaultdict[tuple[str, str, str], _Direction] = field(
        default_factory=lambda: defaultdict(_Direction)
    )
    _held: list[tuple[str, Message]] = field(default_factory=list)
    _reset: set[tuple[Process, Process, str]] = field(default_factory=set)
    """Connections between two runs of processes that deliver nothing more but their end."""

    def send(self, message: Message, connection: str = "") -> None:
        """Sends a message; messages of one `connection` arrive in their order.

        An ended process sends nothing more, although its stack may still unwind. Only its kernel
        sends the end of its connections.
        """
        if message.source.alive or message.ends:
            self._forward(message, connection)

    def _forward(self, message: Message, connection: str) -> None:
        self.messages += 1
        if self._is_held(connection, message):
            self._hold(connection, message)
            return
        direction = self._directions[(message.source.name, message.target.name, connection)]
        delay = self._delay(message.source, message.target)
        arrival = max(self.loop.time() + delay, direction.last_arrival + _GAP)
        direction.last_arrival = arrival
        # not in the context of the source: a kernel also delivers while the process is stopped
        context = OUTSIDE.context()
        self.loop.call_at(arrival, self._arrive, connection, message, context=context)

    def stall(self, source: str, target: str) -> list[tuple[str, str, str]]:
        """Stalls the present connections in one direction; returns them."""
        found = [each for each in self._directions if each[:2] == (source, target)]
        self.stalled.update(found)
        return found

    def release(self, connections: Iterable[tuple[str, str, str]]) -> None:
        """Makes connections deliver again."""
        self.stalled.difference_update(connections)
        self._send_held()

    def heal(self) -> None:
        """Ends all partitions."""
        self.cut.clear()
        self._send_held()

    def _is_held(self, connection: str, message: Message) -> bool:
        names = (message.source.name, message.target.name)
        return names in self.cut or (*names, connection) in self.stalled

    def _send_held(self) -> None:
        """Sends the held messages again, in their order."""
        held, self._held = self._held, []
        for connection, message in held:
            self._forward(message, connection)

    def _hold(self, connection: str, message: Message) -> None:
        message.was_held = True
        self._held.append((connection, message))

    def _delay(self, source: Process, target: Process) -> float:
        delay = self.rng.expovariate(1 / _USUAL_SECONDS)
        if self.rng.random() < _SLOW_SHARE:
            delay += self.rng.uniform(0, _SLOWEST_SECONDS)
        return delay + self.slow.get(source.name, 0.0) + self.slow.get(target.name, 0.0)

    def _arrive(self, connection: str, message: Message) -> None:
        source, target = message.source, message.target
        if self._is_held(connection, message):
            self._hold(connection, message)
            return
        if self._is_discarded(connection, message):
            return
        if not target.alive:
            if target.name not in self.dark and source.alive:
                self.loop.run_in(source, message.lost)
            return
        self.record(f"{source.name} -> {target.name}  {message.label}")
        self._deliver(message)

    def _is_discarded(self, connection: str, message: Message) -> bool:
        """Whether a message is lost because its source has ended."""
        if message.source.alive or message.ends or message.was_held:
            return False
        key = message.source, message.target, connection
        if key not in self._reset and self.rng.random() < _RESET_SHARE:
            self._reset.add(key)
            self.record(f"{message.source.name}  resets its connection to {message.target.name}")
        return key in self._reset

    def _deliver(self, message: Message) -> None:
        self.loop.run_in(message.target, message.deliver)
