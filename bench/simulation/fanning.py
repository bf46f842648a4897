"""Asking many shards at once, from one event loop.

Does in simulated time what `stateless/answer/scatter.py` does. A front fans out, and so does a
middle node: it stands between a front and some of its shards, and is to the front what a shard is.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from bench.simulation.costs import Costs
from bench.simulation.node import Ask, Steps, doing
from bench.simulation.queues import Threads
from bench.simulation.shard import Shard
from winnow.deadline import Deadline
from winnow.stateless.policy.waiting import AdaptiveTimeout, WaitingSettings

_MS, _US = 1e-3, 1e-6
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Gathered:
    """How many shards answered, of those asked."""

    answered: int
    asked: int


class Fan:
    """An event loop that asks shards."""

    def __init__(
        self, env: simpy.Environment, loop: Threads, shards: Sequence[Shard], costs: Costs
    ) -> None:
        self._env, self._loop, self._costs = env, loop, costs
        self.shards = shards

    def gather(
        self, asks: Mapping[int, Ask], settings: WaitingSettings, deadline: Deadline
    ) -> Generator[simpy.Event, Any, Gathered]:
        """Asks shards and waits for as long as the policy says; interrupted, it gives all up."""
        waits = AdaptiveTimeout(settings, len(asks), deadline)
        news = _News(self._env)
        calls = [
            self._env.process(self._call(self.shards[shard], ask, deadline, len(asks), news))
            for shard, ask in asks.items()
        ]
        try:
            while news.ended < len(asks):
                failed = news.ended - news.answered
                wait = waits.next(news.answered, failed).seconds
                if not (yield from news.come(wait)):
                    break
        finally:
            for call in calls:
                if call.is_alive:
                    call.interrupt()
        return Gathered(news.answered, len(asks))

    def _call(
        self, shard: Shard, ask: Ask, deadline: Deadline, together: int, news: "_News"
    ) -> Steps:
        """A call, with what it costs this event loop before and after."""
        front = self._costs.front
        cost = (front.shard_ms if ask.tokens is None else front.read_ms) * _MS
        looks = front.pair_us * _US * together
        try:
            yield from doing([self._loop.do(cost / 2)])
            answered = yield from shard.call(ask, deadline)
            yield from doing([self._loop.do(cost / 2 + looks)])
        except simpy.Interrupt:
            return
        news.tell(answered)


class _News:
    """Tells whoever gathers that a call has ended."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env, self._event = env, env.event()
        self._until = float("inf")
        self._alarm: simpy.Event | None = None
        self.answered = self.ended = 0

    def tell(self, answered: bool) -> None:
        self.ended += 1
        self.answered += answered
        if not self._event.triggered:
            self._event.succeed()

    def come(self, seconds: float) -> Generator[simpy.Event, Any, bool]:
        """Waits for news; False if there is none for so many seconds."""
        until = self._env.now + seconds
        if self._alarm is None or until < self._until - _ROUNDING:
            self._until, self._alarm = until, self._env.timeout(seconds)
        self._event, before = self._env.event(), self.ended
        yield self._event | self._alarm
        return self.ended > before
