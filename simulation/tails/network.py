"""A network whose messages take processor time at both ends, and no other faults."""

from collections.abc import Callable
from functools import partial
from random import Random

from simulation.network import Message, Network
from simulation.process import Process
from simulation.tails.costs import Costs, Role
from simulation.tails.loop import TimedLoop


class TimedNetwork(Network):
    """Delivers messages after the sender and the receiver have worked for them."""

    def __init__(
        self, loop: TimedLoop, rng: Random, costs: Costs, *, between_machines: float
    ) -> None:
        """`between_machines`: seconds of a message between two machines."""
        super().__init__(loop, rng, lambda _: None)
        self._timed, self._costs, self._between = loop, costs, between_machines
        self.roles: dict[Process, Role] = {}
        """What each process does."""

    def send(self, message: Message, connection: str = "") -> None:
        """Sends a message once its sender has worked for it."""
        transmit = super().send
        self._work(message, message.source, partial(transmit, message, connection), sends=True)

    def _deliver(self, message: Message) -> None:
        deliver = partial(self.loop.run_in, message.target, message.deliver)
        self._work(message, message.target, deliver, sends=False)

    def _work(
        self, message: Message, process: Process, then: Callable[[], None], *, sends: bool
    ) -> None:
        seconds = self._costs.handle(message, self.roles[process], sends=sends)
        if seconds:
            self._timed.interpreters[process].work_on_loop(seconds, then)
        else:
            then()

    def _delay(self, source: Process, target: Process) -> float:
        machines = [self._timed.interpreters[each].machine for each in (source, target)]
        seconds = self._costs.units.message_ms / 1e3
        return seconds if machines[0] is machines[1] else seconds + self._between
