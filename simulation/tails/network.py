"""A network whose messages take processor time at both ends, and no other faults."""

from collections.abc import Callable
from functools import partial
from random import Random

from simulation.network import Message, Network
from simulation.process import Process
from simulation.tails.costs import Costs
from simulation.tails.loop import TimedLoop


class TimedNetwork(Network):
    """Delivers messages after the sender and the receiver have worked for them."""

    def __init__(
        self, loop: TimedLoop, rng: Random, *, on_machine: float, between_machines: float
    ) -> None:
        """Seconds of a message between two processes of a machine, and between two machines."""
        super().__init__(loop, rng, lambda _: None)
        self._timed, self._on_machine, self._between = loop, on_machine, between_machines
        self.costs: dict[Process, Costs] = {}
        """Those of each process."""

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
        seconds = self.costs[process].handle(message, sends=sends)
        if seconds:
            self._timed.interpreters[process].work_on_loop(seconds, then)
        else:
            then()

    def _delay(self, source: Process, target: Process) -> float:
        machines = [self._timed.interpreters[each].machine for each in (source, target)]
        between = 0.0 if machines[0] is machines[1] else self._between
        return self._on_machine + between
