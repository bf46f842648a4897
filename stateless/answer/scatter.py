"""Asking many shards at once, and never failing because one does.

A shard's failure is returned as an outcome, so that gathering has one path (as in Vespa's
dispatch). Knows awaitables and errors; knows no gRPC.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import structlog

from winnow.domain.coverage import ShardStatus
from winnow.errors import (
    DeadlineExceededError,
    Fault,
    NotLoadedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import many
from winnow.stateless.answer.completion_order import CompletionOrder
from winnow.stateless.policy.waiting import AdaptiveTimeout, Wait

Result = TypeVar("Result")
_MOST_NAMED, _LONGEST_REASON = 8, 160
"""Shards, and bytes of each reason. An error travels in the metadata of a call, of which gRPC lets
8 KB through, and there it stands twice: once with three bytes for each that is not ASCII.
"""
_SHARD = "SHARD_"
_REASONS = {
    ShardStatus.TIMEOUT: "no reply in time",
    ShardStatus.UNAVAILABLE: "none of its replicas could be reached",
    ShardStatus.OVERLOADED: "its nodes have too much to do",
    ShardStatus.FAILED: "its node failed",
    ShardStatus.NOT_LOADED: "its nodes could not load it",
}
"""What callers are told of a shard that raised an error."""
_log = structlog.get_logger("stateless.answer.scatter")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a shard gave no result."""

    status: ShardStatus
    reason: str
    """For every caller: names no machine, file or checksum."""
    retry_after: float = 0.0
    """Seconds, where an overloaded shard said so."""
    detail: str = ""
    """More, for the log and for administrators; empty if there is no more."""

    @property
    def full(self) -> str:
        """The reason with its detail."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Result]):
    """Replies by shard: every shard that was called is in exactly one of the two."""

    results: dict[int, Result]
    failures: dict[int, Failure]


async def scatter(
    calls: Mapping[int, Coroutine[Any, Any, Result]],
    waits: AdaptiveTimeout,
    partial: bool = True,
    empty: Callable[[Result], bool] = lambda _: False,
    why_late: Callable[[int], str] = lambda _: "",
) -> Gathered[Result]:
    """Awaits one call per shard for as long as `waits` says, then cancels the calls that are late.

    Cancelling the scatter cancels every call.

    Args:
        calls: by shard.
        waits: of as many shards as there are calls.
        partial: goes on when a shard fails.
        empty: whether a result holds nothing to answer with, so that others are waited for.
        why_late: what a shard waited for, if that is known; said of it if it is late.

    Raises:
        WinnowError: a shard failed, and `partial` is false.

    """
    gathered: Gathered[Result] = Gathered({}, {})
    shards = {asyncio.create_task(call): shard for shard, call in calls.items()}
    pending = set(shards)
    ended, found_nothing = CompletionOrder(pending), 0
    try:
        while pending:
            wait = waits.next(len(gathered.results), len(gathered.failures), found_nothing)
            done = await ended.next(wait.seconds)
            pending.difference_update(done)
            for task in done:
                _add(gathered, shards[task], task)
                found_nothing += _found_nothing(gathered, shards[task], empty)
            if not done:
                late = _late(wait, len(gathered.results))
                gathered.failures.update({shards[task]: late for task in pending})
                break
            if gathered.failures and not partial:
                break
    finally:
        for task in shards:
            task.cancel()
    _explain(gathered, why_late)
    if gathered.failures and not partial:
        raise incomplete(gathered.failures)
    return gathered


def _found_nothing(gathered: Gathered[Result], shard: int, empty: Callable[[Result], bool]) -> bool:
    return shard in gathered.results and empty(gathered.results[shard])


def _explain(gathered: Gathered[Any], why_late: Callable[[int], str]) -> None:
    """Adds to the reasons of shards that were late what they waited for."""
    for shard, failure in gathered.failures.items():
        if failure.status is ShardStatus.TIMEOUT and (why := why_late(shard)):
            gathered.failures[shard] = replace(failure, reason=f"{why} ({failure.reason})")


def incomplete(failures: Mapping[int, Failure]) -> WinnowError:
    """The error of a caller who needs every shard."""
    return error_of(failures, "not every shard answered, and all were asked for")


def error_of(failures: Mapping[int, Failure], what: str) -> WinnowError:
    """The error of a caller who gets no answer because of these failures.

    Every shard late: DEADLINE_EXCEEDED. Every shard late or overloaded: RESOURCE_EXHAUSTED, after
    the longest wait that one asks for. Any other failure among them: UNAVAILABLE.
    """
    full = f"{what}: {_listed(failures, lambda failure: failure.full)}"
    public = f"{what}: {_listed(failures, lambda failure: failure.reason)}"
    return _worst(failures, full).with_public(public)


def _listed(failures: Mapping[int, Failure], told: Callable[[Failure], str]) -> str:
    some = sorted(failures.items())[:_MOST_NAMED]
    reasons = [f"shard {shard}: {_cut(told(failure))}" for shard, failure in some]
    if len(failures) > len(some):
        reasons.append(f"and {len(failures) - len(some)} more")
    return "; ".join(reasons)


def _worst(failures: Mapping[int, Failure], message: str) -> WinnowError:
    some = sorted(failures.items())[:_MOST_NAMED]
    faults = [Fault(f"{_SHARD}{f.status.name}", {"shard": str(shard)}) for shard, f in some]
    # who was given up as the question allows did not fail: what the others did is the reason
    statuses = {failure.status for failure in failures.values()} - {ShardStatus.ADAPTIVE}
    if statuses <= {ShardStatus.TIMEOUT}:
        return DeadlineExceededError(message, faults)
    if statuses <= {
        ShardStatus.TIMEOUT,
        ShardStatus.OVERLOADED,
    }:  # late shards have much to do, too
        wait = max(failure.retry_after for failure in failures.values())
        return OverloadedError(message, wait, faults)
    return UnavailableError(message, faults)


def _cut(reason: str) -> str:
    """The beginning of a reason; no character is cut in two."""
    return reason.encode(errors="replace")[:_LONGEST_REASON].decode(errors="ignore")


def failed_shards(error: WinnowError) -> list[tuple[int, ShardStatus]]:
    """The shards that `error_of` named, and what became of them."""
    return [
        (int(fault.metadata["shard"]), ShardStatus[fault.reason.removeprefix(_SHARD)])
        for fault in error.faults
        if fault.reason.startswith(_SHARD) and "shard" in fault.metadata
    ]


def _late(wait: Wait, answered: int) -> Failure:
    if wait.adaptive:
        reason = f"given up once {many(answered, 'shard')} had answered, as the question allows"
        return Failure(ShardStatus.ADAPTIVE, reason)
    return Failure(ShardStatus.TIMEOUT, _REASONS[ShardStatus.TIMEOUT])


def _add(gathered: Gathered[Result], shard: int, task: asyncio.Task[Result]) -> None:
    if task.cancelled():
        gathered.failures[shard] = Failure(ShardStatus.UNAVAILABLE, "the call was cancelled")
    elif (error := task.exception()) is not None:
        gathered.failures[shard] = _failure(shard, error)
    else:
        gathered.results[shard] = task.result()


def _failure(shard: int, error: BaseException) -> Failure:
    if not isinstance(error, WinnowError):
        _log.error("shard call failed unexpectedly", shard=shard, exc_info=error)
        return Failure(ShardStatus.FAILED, "internal error on the front node", detail=repr(error))
    retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
    status = status_of(error)
    return Failure(status, _REASONS[status], retry_after, str(error))


def status_of(error: WinnowError) -> ShardStatus:
    """The status of a shard that raised `error`."""
    if isinstance(error, DeadlineExceededError):
        return ShardStatus.TIMEOUT
    if isinstance(error, NotLoadedError):
        return ShardStatus.NOT_LOADED
    if isinstance(error, UnavailableError):
        return ShardStatus.UNAVAILABLE
    if isinstance(error, OverloadedError):
        return ShardStatus.OVERLOADED
    return ShardStatus.FAILED
