"""Batches on their way: several at once, tried again, each durable or the end."""

import asyncio
import gc
import itertools
import math
from collections.abc import Sequence

import pytest
from awaited import AwaitedCount, AwaitedList
from manual_clock import ManualClock
from tenacious import LONG, turn

from winnow.cli.feed.batches import FeedBatch, document_deletions
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.sending import Sender
from winnow.client import Outcome, Position, WriteResult
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.errors import (
    InvalidRequestError,
    NotLoadedError,
    NotServedError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.passages.rows import BadRow, Row


class Feeds:
    """A front that stores what it is sent, and fails as it is told to."""

    def __init__(self) -> None:
        self.errors: list[WinnowError] = []
        self.lost: list[WinnowError] = []
        """Told instead of what was deleted."""
        self.moody = self.angry = False
        """Refuses every other deletion."""
        self.refused: set[str] = set()
        self.requests = AwaitedList[tuple[str, ...]]()
        self.limits: list[float] = []
        """The seconds that each request may take."""
        self.stored: list[str] = []
        self.there: set[str] = set()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.quick: set[str] = set()
        """Stored without waiting for that."""
        self.now = AwaitedCount()
        """Requests in hand."""
        self.most = self.most_deleted = 0

    async def store(self, batch: FeedBatch, limit: float) -> Sequence[WriteResult]:
        self.requests.append(batch.ids)
        self.limits.append(limit)
        self.now.add()
        self.most = max(self.most, self.now.value)
        try:
            await asyncio.sleep(0)
            if self.quick.isdisjoint(batch.ids):
                await self.go_on.wait()
            if self.errors:
                raise self.errors.pop(0)
            if wrong := [n for n, name in enumerate(batch.ids) if name in self.refused]:
                raise InvalidRequestError(
                    *(Violation(f"passages[{n}].text", "is too long") for n in wrong)
                )
            self.stored += batch.ids
            return [result(name) for name in batch.ids]
        finally:
            self.now.add(-1)

    async def delete(self, ids: Sequence[str], limit: float) -> Sequence[WriteResult]:
        await asyncio.sleep(0)
        self.most_deleted = max(self.most_deleted, len(ids))
        gone = self.there & set(ids)
        self.there -= gone
        if self.lost:
            raise self.lost.pop(0)
        if self.moody:
            self.angry = not self.angry
            if self.angry:
                raise OverloadedError("full", 0.1)
        return [result(n, Outcome.STORED if n in gone else Outcome.UNCHANGED) for n in ids]


def result(name: str, outcome: Outcome = Outcome.STORED) -> WriteResult:
    return WriteResult(name, outcome, Position(0, 1))


def batch(line: int, *names: str, after: tuple[str, ...] = ()) -> FeedBatch:
    rows = tuple(Row(line, Put(Passage(name, "", "words"))) for name in names)
    return FeedBatch(rows, line, after)


def row(line: int, name: str) -> Row:
    return Row(line, Put(Passage(name, "", "")))


class Desk:
    def __init__(self, skip: bool = False, patience: float = 60) -> None:
        self.feeds, self.ledger, self.clock = Feeds(), Ledger(), ManualClock()
        self.bad: list[BadRow] = []
        self.waited: list[WinnowError] = []
        self.rests: list[float] = []
        self.stored = 0
        self.sender = Sender(
            writer=self.feeds,
            ledger=self.ledger,
            patience=patience,
            on_refused=self.bad.append,
            on_stored=self._stored,
            on_retry=self.waited.append,
            skip_refused=skip,
            sleep=self._rest,
            clock=self.clock,
        )

    async def send(self, *sent: FeedBatch, at_once: int = 4) -> None:
        left = list(sent)

        async def next_batch() -> FeedBatch | None:
            await asyncio.sleep(0)
            return left.pop(0) if left else None

        await asyncio.wait_for(self.sender.run(next_batch, at_once), LONG)

    def _stored(self, count: int) -> None:
        self.stored += count

    async def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.clock.advance(seconds)
        await asyncio.sleep(0)


async def turns() -> None:
    """As long as anything that is not held up can take."""
    for _ in range(50):
        await turn()


async def test_everything_is_sent_and_no_more_at_once_than_asked_for() -> None:
    desk = Desk()
    desk.feeds.go_on.clear()
    sent = [batch(line, f"p{line}") for line in range(1, 21)]
    sending = asyncio.create_task(desk.send(*sent, at_once=3))
    await desk.feeds.now.reaches(3)
    desk.feeds.go_on.set()
    await sending
    assert sorted(desk.feeds.stored) == sorted(f"p{line}" for line in range(1, 21))
    assert (desk.feeds.most, desk.ledger.line, desk.stored) == (3, 20, 20)
    assert desk.sender.totals.outcomes == {Outcome.STORED: 20}


async def test_batches_with_a_common_id_are_sent_one_after_the_other() -> None:
    desk = Desk()
    desk.feeds.go_on.clear()
    sending = asyncio.create_task(desk.send(batch(1, "a", "b"), batch(2, "b", "c"), batch(3, "d")))
    await desk.feeds.requests.holds(1)
    await turns()
    assert desk.feeds.requests == [("a", "b")]
    desk.feeds.go_on.set()
    await sending
    assert desk.feeds.stored == ["a", "b", "b", "c", "d"]


async def test_surplus_passages_of_a_document_are_deleted_after_it_was_stored() -> None:
    """The same document comes twice, longer at first: none of its first passages may stay."""
    desk = Desk()
    desk.feeds.go_on.clear()
    desk.feeds.quick = {"doc#0", "doc#1"}
    long = (batch(0, "doc#0"), batch(0, "doc#1"), batch(1, "doc#2"), batch(1, "doc#3"))
    sending = asyncio.create_task(
        desk.send(*long, batch(2, "doc#0", after=("doc#1",)), batch(3, "other#7"), at_once=9)
    )
    await desk.feeds.requests.holds(4)
    await turns()
    assert desk.feeds.stored == ["doc#0", "doc#1"]
    assert len(desk.feeds.requests) == 4
    desk.feeds.go_on.set()
    await sending
    assert sorted(desk.feeds.stored[2:4]) == ["doc#2", "doc#3"]
    assert sorted(desk.feeds.stored[4:]) == ["doc#0", "other#7"]


async def test_a_document_does_not_wait_for_its_own_passages() -> None:
    desk = Desk()
    desk.feeds.go_on.clear()
    sending = asyncio.create_task(
        desk.send(batch(0, "doc#8"), batch(0, "doc#9"), batch(1, "doc#10", after=("doc#11",)))
    )
    await desk.feeds.requests.holds(3)
    desk.feeds.go_on.set()
    await sending


@pytest.mark.parametrize("error", [UnavailableError("gone"), OverloadedError("full", 3.0)])
async def test_a_request_that_may_succeed_later_is_sent_again(error: WinnowError) -> None:
    desk = Desk()
    desk.feeds.errors = [error, error]
    await desk.send(batch(1, "a"))
    assert desk.feeds.stored == ["a"]
    assert (len(desk.rests), desk.sender.totals.retries) == (2, 2)
    assert desk.waited == [error, error]
    assert min(desk.rests) > (3 if isinstance(error, OverloadedError) else 0)


async def test_patience_ends() -> None:
    desk = Desk(patience=10)
    desk.feeds.errors = [UnavailableError(f"gone {n}") for n in range(1_000)]
    with pytest.raises(UnavailableError):
        await desk.send(batch(1, "a"))
    assert 4 < desk.clock() - 100 <= 9
    assert desk.ledger.line == 0


async def test_no_request_takes_longer_than_the_patience_that_is_left() -> None:
    """Else a feed with little patience would wait for a server that waits for another one."""
    desk = Desk(patience=10)
    desk.feeds.errors = [UnavailableError(f"gone {n}") for n in range(1_000)]
    with pytest.raises(UnavailableError):
        await desk.send(batch(1, "a"))
    waited = itertools.accumulate(desk.rests, initial=0.0)
    assert desk.feeds.limits == pytest.approx([10 - each for each in waited])
    assert min(desk.feeds.limits) >= 1, "a shorter one would only report its deadline"


async def test_without_patience_a_request_is_sent_once_and_without_a_limit() -> None:
    desk = Desk(patience=0)
    desk.feeds.errors = [UnavailableError("gone")]
    with pytest.raises(UnavailableError):
        await desk.send(batch(1, "a"))
    assert desk.feeds.limits == [math.inf]


@pytest.mark.parametrize(
    "error", [NotWritableError("no log"), NotServedError("no feed"), NotLoadedError("damaged")]
)
async def test_a_lasting_error_ends_the_feed_after_the_requests_in_hand(
    error: WinnowError,
) -> None:
    desk = Desk()
    desk.feeds.errors = [error]
    with pytest.raises(type(error)):
        await desk.send(*[batch(line, f"p{line}") for line in range(1, 20)])
    assert desk.ledger.line == 0
    assert desk.feeds.now.value == 0
    assert len(desk.feeds.stored) < 10
    assert not desk.rests


async def test_of_several_that_fail_at_once_none_is_left_for_asyncio_to_complain_of() -> None:
    unseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: unseen.append(about))
    desk = Desk()
    desk.feeds.errors = [NotServedError("no feed") for _ in range(3)]
    desk.feeds.go_on.clear()
    sending = asyncio.create_task(desk.send(*[batch(line, f"p{line}") for line in range(1, 4)]))
    await desk.feeds.now.reaches(3)
    desk.feeds.go_on.set()
    await asyncio.wait([sending])
    assert isinstance(sending.exception(), NotServedError)
    del sending  # with the frames that hold the others
    gc.collect()
    assert not unseen


async def test_a_row_that_the_front_refuses_is_named_with_its_line() -> None:
    desk = Desk()
    desk.feeds.refused = {"b"}
    with pytest.raises(InvalidRequestError):
        await desk.send(batch(1, "a"), batch(2, "b"))
    assert desk.bad == [BadRow(2, "text is too long (id b)")]


async def test_refused_rows_can_be_left_out() -> None:
    desk = Desk(skip=True)
    desk.feeds.refused = {"b", "d"}
    await desk.send(batch(1, "a", "b", "c"), batch(2, "d"))
    assert desk.feeds.stored == ["a", "c"]
    assert (desk.sender.totals.refused, desk.ledger.line) == (2, 2)


async def test_passages_that_a_document_no_longer_has_are_deleted() -> None:
    desk = Desk()
    desk.feeds.there = {f"doc#{n}" for n in range(2, 40)} | {"doc#90", "other#0"}
    await desk.send(batch(1, "doc#0", "doc#1", after=("doc#2",)))
    assert desk.feeds.there == {"doc#90", "other#0"}


async def test_passages_are_deleted_even_if_the_reply_of_the_first_deletion_was_lost() -> None:
    desk = Desk()
    desk.feeds.there = {f"doc#{n}" for n in range(2, 40)}
    desk.feeds.lost = [UnavailableError("gone")] * 2
    await desk.send(batch(1, "doc#0", "doc#1", after=("doc#2",)))
    assert not desk.feeds.there


async def test_they_are_deleted_also_after_a_feed_that_ended_in_the_middle_of_them() -> None:
    desk = Desk()
    desk.feeds.there = {"doc#4", "doc#5"}
    await desk.send(batch(1, "doc#0", "doc#1", after=("doc#2",)))
    assert not desk.feeds.there


async def test_documents_are_deleted_whole_and_counted() -> None:
    desk = Desk()
    desk.feeds.there = {f"doc#{n}" for n in range(250)} | {"doc", "other#0", "doc#1#0"}
    (deletion,) = document_deletions([row(1, "doc"), row(2, "gone"), row(3, "doc")], 9)
    await desk.send(deletion)
    assert desk.feeds.there == {"doc", "other#0", "doc#1#0"}
    totals = desk.sender.totals
    assert (totals.passages, totals.outcomes) == (250, {Outcome.STORED: 1, Outcome.UNCHANGED: 1})
    assert desk.feeds.stored == []
    assert desk.ledger.line == 3


async def test_a_document_is_deleted_also_where_an_earlier_feed_deleted_some_of_it() -> None:
    desk = Desk()
    desk.feeds.there = {f"doc#{n}" for n in range(90, 130)}
    await desk.send(*document_deletions([row(1, "doc")], 9))
    assert not desk.feeds.there


async def test_a_document_that_is_stored_and_then_deleted_is_gone() -> None:
    desk = Desk()
    desk.feeds.go_on.clear()
    (deletion,) = document_deletions([row(2, "doc")], 9)
    sending = asyncio.create_task(desk.send(batch(1, "doc#0", after=("doc#1",)), deletion))
    await turns()
    assert desk.feeds.most_deleted == 0  # it waits for what it would delete
    desk.feeds.go_on.set()
    await sending
    assert desk.feeds.most_deleted > 0


async def test_a_front_that_refuses_every_request_once_is_asked_no_longer_than_needed() -> None:
    desk = Desk()
    desk.feeds.moody = True
    await desk.send(batch(1, "doc#0", "doc#1", after=("doc#2",)))
    assert desk.sender.totals.retries == 2


async def test_no_request_deletes_more_than_a_request_may() -> None:
    desk = Desk()
    names = tuple(f"doc{n}#1" for n in range(1_000))
    await desk.send(batch(1, "doc#0", after=names))
    assert desk.feeds.most_deleted == 1_000


async def test_cancelling_leaves_nothing_behind() -> None:
    desk = Desk()
    desk.feeds.go_on.clear()
    sending = asyncio.create_task(desk.send(batch(1, "a"), batch(2, "b")))
    await desk.feeds.now.reaches(2)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert desk.feeds.now.value == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
