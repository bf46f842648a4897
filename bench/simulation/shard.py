"""A shard with its replicas, as a front calls it: the driver of the policies.

Does in simulated time what `stateless/replicas/call.py` and `pool.py` do: takes replicas, sends,
waits, sends again, and gives up what is not needed any more.
"""

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import simpy

from bench.simulation.node import Answering, Ask
from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.policy.outcomes import CallOutcome
from winnow.policy.outliers import Standing
from winnow.stateless.policy.hedge_schedule import HedgeSchedule
from winnow.stateless.policy.hedging import HedgeBudget, HedgeDelay, HedgeDelays
from winnow.stateless.policy.replicas import Attempt, Replicas
from winnow.stateless.replicas.replicated import ReplicaPolicies

Answered = Generator[simpy.Event, Any, bool]
"""Steps that end with whether there was an answer."""


@dataclass
class Tally:
    """What became of all calls of a cluster."""

    calls: int = 0
    hedges: int = 0
    ejections: int = 0


@dataclass(eq=False, slots=True)
class Try:
    """An attempt that was sent."""

    attempt: Attempt
    process: simpy.Process


class Shard:
    """Calls go to one replica, and to another one if that is late."""

    def __init__(
        self,
        env: simpy.Environment,
        nodes: Mapping[str, Answering],
        policies: ReplicaPolicies,
        chance: random.Random,
        network: float,
        tally: Tally,
    ) -> None:
        """`nodes`: replicas by address; `network`: seconds of a message from machine to machine."""
        self.env, self.tally, self.network = env, tally, network
        self._nodes, self._policies = nodes, policies
        self.replicas = Replicas(nodes, policies.replicas, self.clock, chance)
        self.budget = HedgeBudget(policies.hedge)
        self._delays = HedgeDelays(policies.hedge, self.clock)
        self._in_hand: set[Try] = set()

    def clock(self) -> float:
        """Seconds since the beginning."""
        return float(self.env.now)

    def call(self, ask: Ask, deadline: Deadline) -> Answered:
        """The steps of one call. Interrupted, it gives up what it has sent."""
        usual = self._delays.usual(ask.kind, ask.passages)
        silence = self._policies.replicas.outliers.silence
        race = HedgeSchedule(self._policies.retry, usual, silence, deadline)
        self.tally.calls += 1
        return _Call(self, race, self._delays.of(ask.kind, ask.passages), ask).run()

    def send(self, attempt: Attempt, ask: Ask) -> Try:
        """Sends a request to a replica that was taken."""
        node = self._nodes[attempt.replica.address]
        sent = Try(attempt, self.env.process(self._sent(node, ask)))
        self._in_hand.add(sent)
        return sent

    def end(self, ended: Try, outcome: CallOutcome, seconds: float | None = None) -> None:
        """Ends an attempt, once. If its replica is ejected for it, so are its other requests."""
        self._in_hand.discard(ended)
        if ended.process.is_alive:
            ended.process.interrupt()
        record = ended.attempt.replica.record
        was_out = record.standing is Standing.EJECTED
        self.replicas.release(ended.attempt, outcome, seconds)
        if record.standing is Standing.EJECTED and not was_out:
            self.tally.ejections += 1
            for other in self._in_hand:
                if other.attempt.replica is ended.attempt.replica and other.process.is_alive:
                    other.process.interrupt()

    def _sent(self, node: Answering, ask: Ask) -> Answered:
        try:
            yield self.env.timeout(self.network)
            yield from ask.of(node)
            yield self.env.timeout(self.network)
        except simpy.Interrupt:
            return False
        return True


class _Call:
    """The course of one call."""

    def __init__(self, shard: Shard, race: HedgeSchedule, delay: HedgeDelay, ask: Ask) -> None:
        self._shard, self._race, self._delay, self._ask = shard, race, delay, ask
        self._running: dict[simpy.Event, Try] = {}
        self._winner: Try | None = None

    def run(self) -> Answered:
        try:
            self._shard.budget.earn()
            self._start()
            while self._running and self._winner is None:
                yield self._next()
                ended = [process for process in self._running if process.processed]
                if not ended:
                    self._send_hedge()
                for process in ended:  # all of them: what ends at the same moment answers, too
                    self._ended(self._running.pop(process))
        except simpy.Interrupt:
            for left in self._running.values():
                self._shard.end(left, self._race.outcome(left.attempt, None))
            raise
        return self._won()

    def _next(self) -> simpy.Event:
        """An attempt that ends, or the moment of a hedge."""
        wait, env = self._race.next(), self._shard.env
        events = list(self._running)
        if wait is not None:
            events.append(env.timeout(wait))
        return events[0] if len(events) == 1 else env.any_of(events)

    def _start(self) -> None:
        attempt = self._shard.replicas.take(self._race.tried, not self._ask.passages)
        if attempt is not None:
            self._race.sent(attempt)
            self._send(attempt)

    def _send(self, attempt: Attempt) -> None:
        sent = self._shard.send(attempt, self._ask)
        self._running[sent.process] = sent

    def _send_hedge(self) -> None:
        overdue = self._race.late()
        suspect = any(each.attempt.replica.record.suspect for each in self._running.values())
        urgent = overdue or suspect
        replicas = self._shard.replicas
        attempt = replicas.take_spare(self._race.tried, urgent)
        if attempt is None:
            return
        if not self._shard.budget.spend(urgent):
            replicas.release(attempt, CallOutcome.ABANDONED)
            return
        self._shard.tally.hedges += 1
        self._race.sent(attempt, hedge=True)
        self._send(attempt)

    def _ended(self, ended: Try) -> None:
        race, shard = self._race, self._shard
        if ended.process.value:
            self._delay.observe(race.waited(ended.attempt))
            shard.end(ended, CallOutcome.ANSWERED, race.relative(ended.attempt))
            self._winner = self._winner or ended
            return
        shard.end(ended, CallOutcome.ABANDONED)  # given up with its replica
        over = self._running or self._winner
        if not over and race.retries(UnavailableError("given up")):
            self._start()

    def _won(self) -> bool:
        """Whether there was an answer; gives up what is not needed any more."""
        if self._winner is None:
            return False
        for loser in self._running.values():
            self._shard.end(loser, self._race.lost(loser.attempt, self._winner.attempt))
        return True
