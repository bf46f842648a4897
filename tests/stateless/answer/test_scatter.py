"""A shard's failure is an outcome, not an exception."""

import asyncio
import base64
from urllib.parse import quote

import pytest
from manual_clock import ManualClock
from tenacious import LONG

from winnow.deadline import Deadline
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import WaitPolicy
from winnow.errors import (
    ArchiveUnreachableError,
    DeadlineExceededError,
    IdentityError,
    NotLoadedError,
    OverloadedError,
    RestoreFailedError,
    RestoringError,
    UnavailableError,
    WinnowError,
)
from winnow.rpc.status import error_of_bytes, error_to_bytes, rich_status
from winnow.stateless.answer.failures import Failure, error_of
from winnow.stateless.answer.scatter import ScatterResult, scatter
from winnow.stateless.policy.waiting import AdaptiveTimeout
from winnow.stateless.tenants.tenancy import NO_TENANT, TenantScope


def waits(seconds: float, shards: int = 2, **settings: float) -> AdaptiveTimeout:
    """By a clock that stands: a machine that is busy takes no time from those who wait."""
    return AdaptiveTimeout(WaitPolicy(**settings), shards, Deadline.after(seconds, ManualClock()))


async def gives(value: int) -> int:
    return value


async def fails(error: Exception) -> int:
    raise error


async def hangs(ended: asyncio.Event, begun: asyncio.Event | None = None) -> int:
    if begun is not None:
        begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()
    return 0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DeadlineExceededError("late"), ShardStatus.TIMEOUT),
        (UnavailableError("gone"), ShardStatus.UNAVAILABLE),
        (NotLoadedError("damaged"), ShardStatus.NOT_LOADED),
        (OverloadedError("full"), ShardStatus.OVERLOADED),
        (IdentityError("other"), ShardStatus.FAILED),
        (WinnowError("?"), ShardStatus.FAILED),
        (ZeroDivisionError("a bug"), ShardStatus.FAILED),
    ],
)
async def test_every_error_becomes_a_status(error: Exception, status: ShardStatus) -> None:
    gathered = await scatter({0: gives(7), 1: fails(error)}, waits(5))
    assert gathered.results == {0: 7}
    assert gathered.failures[1].status is status
    assert gathered.failures[1].reason


async def test_a_shard_that_is_being_restored_is_told_with_a_fixed_reason() -> None:
    """Its passages are not covered, and the reason names no machine and no archive."""
    gathered = await scatter({0: gives(7), 1: fails(RestoringError("s3://secret"))}, waits(5))
    failure = gathered.failures[1]
    assert failure.status is ShardStatus.UNAVAILABLE
    assert failure.reason == "it is being restored from its archive"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RestoringError, "the passages are being restored from an archive: try again"),
        (ArchiveUnreachableError, "the archive of the passages cannot be reached now: try again"),
        (RestoreFailedError, "the passages cannot be restored from their archive now: try again"),
    ],
)
async def test_a_tenant_learns_what_its_archived_shard_lacks_and_not_where(
    error: type[UnavailableError], message: str
) -> None:
    """The error goes from the node to the front, and to a caller who may see no details."""
    of_node = error("cannot use s3://secret").with_public("the archive is away")
    received = error_of_bytes(error_to_bytes(of_node), "node-0:9000")
    gathered = await scatter({0: fails(received)}, waits(5, shards=1))
    with pytest.raises(error) as told, TenantScope("acme", "key").errors():
        raise error_of(gathered.failures, "no shard answered")
    status = rich_status(told.value)
    assert (status.code.name, status.details) == ("UNAVAILABLE", message)
    with pytest.raises(error) as told, NO_TENANT.errors():
        raise error_of(gathered.failures, "no shard answered")
    assert "archive" in rich_status(told.value).details
    assert "secret" not in str(told.value)


async def test_a_bug_tells_no_details_to_users() -> None:
    gathered = await scatter({1: fails(ZeroDivisionError("secret"))}, waits(5))
    assert "secret" not in gathered.failures[1].reason


async def test_what_is_late_is_cancelled_and_timed_out() -> None:
    ended = asyncio.Event()
    gathered = await scatter({0: gives(1), 1: hangs(ended)}, waits(0.05))
    assert gathered.results == {0: 1}
    assert gathered.failures[1].status is ShardStatus.TIMEOUT
    await asyncio.wait_for(ended.wait(), LONG)


async def test_cancelling_the_caller_cancels_every_call() -> None:
    ended = [asyncio.Event(), asyncio.Event()]
    begun = [asyncio.Event(), asyncio.Event()]
    calls = {n: hangs(ended[n], begun[n]) for n in range(2)}
    task = asyncio.create_task(scatter(calls, waits(60)))
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in begun)), LONG)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in ended)), LONG)


async def test_nobody_asked_is_nobody_failed() -> None:
    gathered: ScatterResult[int] = await scatter({}, waits(1))
    assert (gathered.results, gathered.failures) == ({}, {})


async def test_once_enough_have_answered_the_rest_is_given_up_early() -> None:
    ended = asyncio.Event()
    patient = waits(60, shards=2, min_coverage=0.5, min_wait_factor=0.0)
    gathered = await scatter({0: gives(1), 1: hangs(ended)}, patient)
    assert gathered.results == {0: 1}
    assert gathered.failures[1].status is ShardStatus.ADAPTIVE
    await asyncio.wait_for(ended.wait(), LONG)


async def test_a_failure_does_not_count_as_an_answer() -> None:
    ended = asyncio.Event()
    patient = waits(0.05, shards=2, min_coverage=0.5, min_wait_factor=0.0)
    gathered = await scatter({0: fails(UnavailableError("gone")), 1: hangs(ended)}, patient)
    assert gathered.failures[1].status is ShardStatus.TIMEOUT


async def test_if_all_are_needed_the_first_failure_ends_it() -> None:
    ended, begun = asyncio.Event(), asyncio.Event()

    async def fails_later() -> int:
        await begun.wait()
        raise UnavailableError("gone")

    calls = {0: fails_later(), 1: hangs(ended, begun)}
    with pytest.raises(UnavailableError, match=r"partial results are forbidden: shard 0: .*: gone"):
        await scatter(calls, waits(60), allows_partial=False)
    await asyncio.wait_for(ended.wait(), LONG)


async def test_if_all_are_needed_being_late_is_an_error() -> None:
    with pytest.raises(DeadlineExceededError, match="shard 1: no reply in time"):
        await scatter({0: gives(1), 1: hangs(asyncio.Event())}, waits(0.01), allows_partial=False)


LATE = Failure(ShardStatus.TIMEOUT, "no reply")
GIVEN_UP = Failure(ShardStatus.ADAPTIVE, "given up")
FULL = Failure(ShardStatus.OVERLOADED, "full", 0.25)
FULLER = Failure(ShardStatus.OVERLOADED, "full", 0.5)
DAMAGED = Failure(ShardStatus.NOT_LOADED, "damaged")


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        ([LATE, GIVEN_UP], DeadlineExceededError),
        ([FULL, FULLER], OverloadedError),
        ([LATE, FULL], OverloadedError),
        ([GIVEN_UP, LATE, FULL], OverloadedError),
        ([LATE, FULL, DAMAGED], UnavailableError),
        ([DAMAGED], UnavailableError),
    ],
)
def test_what_shards_have_in_common_is_said(
    failures: list[Failure], error: type[WinnowError]
) -> None:
    got = error_of(dict(enumerate(failures)), "nothing")
    assert type(got) is error
    assert [fault.metadata["shard"] for fault in got.faults] == [
        str(shard) for shard in range(len(failures))
    ]
    assert got.faults[0].reason == f"SHARD_{failures[0].status.name}"


def test_the_longest_wait_is_passed_on() -> None:
    got = error_of({0: FULL, 1: FULLER, 2: LATE}, "nothing")
    assert isinstance(got, OverloadedError)
    assert got.retry_after == 0.5


def test_a_thousand_shards_fit_into_one_error() -> None:
    failures = {n: Failure(ShardStatus.UNAVAILABLE, "x" * 1000) for n in range(1000)}
    status = rich_status(error_of(failures, "no shard gave an answer"))
    assert "and 992 more" in status.details
    assert sum(len(value) for _, value in status.trailing_metadata) < 6000


@pytest.mark.parametrize("letter", ["問", "\N{GRINNING FACE}", "\ud800"])
def test_reasons_in_any_language_fit_into_one_error(letter: str) -> None:
    failures = {n: Failure(ShardStatus.UNAVAILABLE, letter * 1000) for n in range(1000)}
    status = rich_status(error_of(failures, "no shard gave an answer"))
    details = base64.b64encode(status.trailing_metadata[0][1])
    assert len(quote(status.details)) + len(details) < 8 << 10
    assert "\N{REPLACEMENT CHARACTER}" not in status.details


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (ShardStatus.OVERLOADED, OverloadedError),
        (ShardStatus.TIMEOUT, DeadlineExceededError),
        (ShardStatus.ADAPTIVE, DeadlineExceededError),
        (ShardStatus.UNAVAILABLE, UnavailableError),
    ],
)
def test_shards_that_were_given_up_do_not_hide_why_the_others_failed(
    status: ShardStatus, kind: type[WinnowError]
) -> None:
    given_up = Failure(ShardStatus.ADAPTIVE, "given up")
    error = error_of({0: given_up, 1: Failure(status, "why", retry_after=0.5)}, "no answer")
    assert type(error) is kind
    assert not isinstance(error, OverloadedError) or error.retry_after == 0.5
