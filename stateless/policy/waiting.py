"""How long to wait for shards that have not answered yet.

Knows how many shards were asked and how many replied, and a deadline; knows neither shards nor
calls. Once enough shards have answered, the others get only a part of the time left: the fewer are
missing, the less. An answer that exists is never lost to that: until one shard has found something,
all are waited for. The rest of the rule is that of Vespa's dispatch, `AdaptiveTimeoutHandler`:
https://github.com/vespa-engine/vespa, in container-search, com.yahoo.search.dispatch.
"""

from dataclasses import dataclass, replace

from winnow.deadline import Deadline
from winnow.policy.shares import at_least


@dataclass(frozen=True, slots=True)
class WaitingSettings:
    """When to stop waiting. The defaults are Vespa's: wait for every shard."""

    minimum_coverage: float = 1.0
    """Share of the shards, 0 to 1, that is waited for until the deadline; 1 waits for all.

    However small it is, one that found something is waited for.
    """
    min_factor: float = 0.0
    """Share of the time left, 0 to 1, to wait once that is reached and one shard is missing."""
    max_factor: float = 1.0
    """The same, `min_factor` to 1, if as many shards are missing as `minimum_coverage` allows."""


def of_step(settings: WaitingSettings, shards: int, called: int, failed: int) -> WaitingSettings:
    """The settings of one step of a question, which calls some of its shards.

    One result is waited for in any case: nothing answers no question. And where shards failed in an
    earlier step, more of the others are needed until the minimum of all shards is reached.

    Args:
        settings: of the question.
        shards: all of its shards.
        called: those that have something to do in this step.
        failed: those that failed before it.

    """
    covered = shards - failed - called
    least = max(at_least(settings.minimum_coverage, shards) - covered, 1)
    if at_least(settings.minimum_coverage, called) >= min(least, called):
        return settings
    return replace(settings, minimum_coverage=min(least / called, 1.0))


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait for the next reply."""

    seconds: float
    """0 or more; shards that have not replied by then are given up."""
    adaptive: bool
    """Whether they are given up by this policy; if not, the deadline has passed."""


class AdaptiveTimeout:
    """The waits of one scatter, computed again after every reply."""

    def __init__(self, settings: WaitingSettings, asked: int, deadline: Deadline) -> None:
        """`asked`: the number of shards called, including unreachable ones."""
        self._settings, self._asked, self._deadline = settings, asked, deadline
        self._minimum = at_least(settings.minimum_coverage, asked)
        self._until = deadline
        self._left: float | None = None
        """Seconds that were left when the minimum was reached."""

    def next(self, answered: int, failed: int = 0, empty: int = 0) -> Wait:
        """How long to wait now that `answered` shards gave a result and `failed` an error.

        A failure covers nothing, so it never counts towards the minimum; it is not waited for
        either. Waits never get longer from one reply to the next.

        `empty`: the shards among `answered` that found nothing.
        """
        pending = self._asked - answered - failed
        if pending <= 0:
            return Wait(0.0, adaptive=False)
        if answered >= self._minimum and answered > empty:
            self._shorten(pending)
        return Wait(max(self._until.left(), 0.0), self._until is not self._deadline)

    def _shorten(self, pending: int) -> None:
        if self._left is None:
            self._left = max(self._deadline.left(), 0.0)
        wait = self._left * self._factor(pending)
        if wait < self._until.left():
            self._until = Deadline.after(wait, self._deadline.clock)

    def _factor(self, pending: int) -> float:
        """From `min_factor` with one shard pending to `max_factor` with all that may be."""
        settings = self._settings
        miss = (1 - settings.minimum_coverage) * self._asked - 1
        if pending == 1 or miss <= 0:
            return settings.min_factor
        slope = min((pending - 1) / miss, 1.0)
        return settings.min_factor + (settings.max_factor - settings.min_factor) * slope
