"""Decides how long to wait for shards that have not answered yet.

This module knows numbers of shards and a deadline. It knows neither shards nor calls. Once enough
shards have answered, the others get only a share of the remaining time. The fewer shards are
missing, the smaller is this share. All shards are awaited until one has found something. The rest
of the rule is that of Vespa's dispatch, `AdaptiveTimeoutHandler`:
https://github.com/vespa-engine/vespa, in container-search, com.yahoo.search.dispatch.
"""

from dataclasses import dataclass, replace

from winnow.deadline import Deadline
from winnow.domain.question import WaitPolicy
from winnow.policy.shares import smallest_count_for_share


def policy_of_step(policy: WaitPolicy, shards: int, called: int, failed: int) -> WaitPolicy:
    """Returns the policy of one step of a question, such as retrieving or reading.

    A step may call only some of the shards. At least one result is awaited. If shards failed in an
    earlier step, the minimum coverage of the whole index needs a larger share of the called shards.

    Args:
        policy: policy of the question.
        shards: number of shards of the index.
        called: number of shards that are called in this step.
        failed: number of shards that failed in earlier steps.

    """
    covered = shards - failed - called
    needed = max(smallest_count_for_share(policy.min_coverage, shards) - covered, 1)
    if smallest_count_for_share(policy.min_coverage, called) >= min(needed, called):
        return policy
    return replace(policy, min_coverage=min(needed / called, 1.0))


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait for the next reply."""

    seconds: float
    """Seconds to wait, 0 or more. Shards that have not replied by then are given up."""
    adaptive: bool
    """Whether this policy ends the wait. If not, the deadline ends it."""


class AdaptiveTimeout:
    """The timeout of one step. It may become shorter with every reply."""

    def __init__(self, policy: WaitPolicy, called: int, deadline: Deadline) -> None:
        """`called`: number of called shards, including unreachable shards."""
        self._policy, self._called, self._deadline = policy, called, deadline
        self._minimum = smallest_count_for_share(policy.min_coverage, called)
        self._until = deadline
        self._remaining_at_minimum: float | None = None
        """Seconds that remained when the minimum coverage was reached."""

    def next_wait(self, answered: int, failed: int = 0, empty: int = 0) -> Wait:
        """How long to wait for the next reply.

        A wait never ends later than the previous wait. A failed shard does not count towards the
        minimum coverage and is not awaited.

        Args:
            answered: number of shards that have returned a result.
            failed: number of shards that have failed.
            empty: number of the `answered` shards that found nothing.

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
        """`min_wait_factor` for one pending shard; `max_wait_factor` for as many as are allowed."""
        policy = self._policy
        miss = (1 - policy.min_coverage) * self._called - 1
        if pending == 1 or miss <= 0:
            return policy.min_wait_factor
        slope = min((pending - 1) / miss, 1.0)
        return policy.min_wait_factor + (policy.max_wait_factor - policy.min_wait_factor) * slope
