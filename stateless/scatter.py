"""Asking many shards at once, and never failing because one does.

A shard's failure is returned as an outcome, so that gathering has one path (as in Vespa's
dispatch). Knows awaitables and errors; knows no gRPC.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from winnow.deadline import Deadline
from winnow.domain.coverage import ShardStatus
from winnow.errors import (
    DeadlineExceededError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)

Result = TypeVar("Result")
_log = structlog.get_logger("stateless.scatter")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a shard gave no result."""

    status: ShardStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Result]):
    """What came back, by shard: every shard that was asked is in exactly one of the two."""

    results: dict[int, Result]
    failures: dict[int, Failure]


async def scatter(
    calls: Mapping[int, Coroutine[Any, Any, Result]], deadline: Deadline
) -> Gathered[Result]:
    """Awaits one call per shard; what is not there at the deadline is cancelled and has timed out.

    Cancelling the scatter cancels every call.
    """
    tasks = {shard: asyncio.create_task(call) for shard, call in calls.items()}
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=max(deadline.left(), 0.0))
        return _gather(tasks)
    finally:
        for task in tasks.values():
            task.cancel()


def _gather(tasks: Mapping[int, asyncio.Task[Result]]) -> Gathered[Result]:
    gathered: Gathered[Result] = Gathered({}, {})
    for shard, task in tasks.items():
        if not task.done():
            failure = Failure(ShardStatus.TIMEOUT, "no reply in time")
            gathered.failures[shard] = failure
        elif task.cancelled():
            gathered.failures[shard] = Failure(ShardStatus.UNAVAILABLE, "the call was cancelled")
        elif (error := task.exception()) is not None:
            gathered.failures[shard] = _failure(shard, error)
        else:
            gathered.results[shard] = task.result()
    return gathered


def _failure(shard: int, error: BaseException) -> Failure:
    if not isinstance(error, WinnowError):
        _log.error("shard call failed unexpectedly", shard=shard, exc_info=error)
        return Failure(ShardStatus.FAILED, "internal error on the front node")
    return Failure(status_of(error), str(error))


def status_of(error: WinnowError) -> ShardStatus:
    """How a shard that raised `error` fared."""
    if isinstance(error, DeadlineExceededError):
        return ShardStatus.TIMEOUT
    if isinstance(error, UnavailableError):
        return ShardStatus.UNAVAILABLE
    if isinstance(error, OverloadedError):
        return ShardStatus.OVERLOADED
    return ShardStatus.FAILED
