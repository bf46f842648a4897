"""Decides how long to wait for shards that have not answered yet.

Knows numbers of shards and a deadline; knows neither shards nor calls. Once enough shards have
answered, the others get only a share of the remaining time: the fewer are missing, the less. All
shards are awaited until one has found something. The rest of the rule is that of Vespa's dispatch,
`AdaptiveTimeoutHandler`:
https://github.com/vespa-engine/vespa, in container-search, com.yahoo.search.dispatch.
"""

from dataclasses import dataclass, replace

from winnow.deadline import Deadline
from winnow.policy.shares import at_least


@dataclass(frozen=True, slots=True)
class WaitingSettings:
    """When to stop waiting. The defaults are Vespa's: wait for every shard."""

    minimum_coverage: float = 1.0
    """Share of the shards, 0 to 1, that is awaited until the deadline; 1 waits for all.

    At least one shard that found something is awaited.
    """
    min_factor: float = 0.0
    """Share of the remaining time, 0 to 1, to wait for the last missing shard."""
    max_factor: float = 1.0
    """Share of the remaining time, `min_factor` to 1, to wait when `minimum_coverage` was just
    reached."""


def of_step(settings: WaitingSettings, shards: int, called: int, failed: int) -> WaitingSettings:
    """The settings of one step of a question, which calls some of its shards.

    At least one result is awaited. If shards failed in an earlier step, more of the others are
    needed to reach the minimum coverage of all shards.

    Args:
        settings: settings of the question.
        shards: number of shards of the index.
        called: number of shards that are called in this step.
        failed: number of shards that failed in earlier steps.

    """
    covered = shards - failed - called
    needed = max(at_least(settings.minimum_coverage, shards) - covered, 1)
    if at_least(settings.minimum_coverage, called) >= min(needed, called):
        return settings
    return replace(settings, minimum_coverage=min(needed / called, 1.0))


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait for the next reply."""

    seconds: float
    """0 or more; shards that have not replied by then are given up."""
    adaptive: bool
    """Whether this policy ends the wait; else the deadline does."""


class AdaptiveTimeout:
    """The timeout of one scatter, which is computed again after every reply."""

    def __init__(self, settings: WaitingSettings, called: int, deadline: Deadline) -> None:
        """`called`: number of called shards, including unreachable ones."""
        self._settings, self._called, self._deadline = settings, called, deadline
        self._minimum = at_least(settings.minimum_coverage, called)
        self._until = deadline
        self._remaining_at_minimum: float | None = None
        """Seconds that remained when the minimum was reached."""

    def next(self, answered: int, failed: int = 0, empty: int = 0) -> Wait:
        """How long to wait now that `answered` shards gave a result and `failed` an error.

        A failed shard does not count towards the minimum, and is not awaited. Each wait ends no
        later than the previous one.

        `empty`: number of the `answered` shards that found nothing.
        """
        pending = self._called - answered - failed
        if pending <= 0:
            return Wait(0.0, adaptive=False)
        if answered >= self._minimum and answered > empty:
            self._shorten(pending)
        return Wait(max(self._until.left(), 0.0), self._until is not self._deadline)

    def _shorten(self, pending: int) -> None:
        if self._remaining_at_minimum is None:
            self._remaining_at_minimum = max(self._deadline.left(), 0.0)
        wait = self._remaining_at_minimum * self._factor(pending)
        if wait < self._until.left():
            self._until = Deadline.after(wait, self._deadline.clock)

    def _factor(self, pending: int) -> float:
        """`min_factor` for one pending shard, up to `max_factor` for as many as are allowed."""
        settings = self._settings
        miss = (1 - settings.minimum_coverage) * self._called - 1
        if pending == 1 or miss <= 0:
            return settings.min_factor
        slope = min((pending - 1) / miss, 1.0)
        return settings.min_factor + (settings.max_factor - settings.min_factor) * slope
