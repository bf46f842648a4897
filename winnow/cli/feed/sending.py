"""Sends batches, several at a time, until each is durable.

Knows requests and when to send them again; does not know where batches come from.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from winnow.cli.feed.batches import FeedBatch, following, numbered
from winnow.cli.feed.in_flight import Claim, Ledger
from winnow.client import Outcome, WriteResult
from winnow.deadline import Clock
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NotLoadedError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.passages.rows import BadRow

_FIELD = re.compile(r"(?:passages|deletions)\[(\d+)\](?:\.(.+))?")
_PASSING = (OverloadedError, UnavailableError, DeadlineExceededError)
"""Errors after which the same request may succeed."""
_LASTING = (NotServedError, NotLoadedError)
"""Of these errors the ones after which it will not."""
_LOOK_AHEAD = 8
"""Passages of a document that are deleted at a time. An interrupted feed may have deleted any of
them, so this number may be missing before the next passage.
"""
WHOLE_LOOK_AHEAD = 100
"""The same number where whole documents are deleted."""
_MOST_IDS = 1_000
"""Ids of a request."""
MOST_DOCUMENTS = _MOST_IDS // WHOLE_LOOK_AHEAD
"""Documents that are deleted at a time."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds."""
_DOUBLINGS = 6


def backoff(attempt: int, chance: float, wanted: float = 0.0) -> float:
    """Seconds to wait before a request is sent again.

    Args:
        attempt: the number of failed attempts, from 1.
        chance: 0 to 1, so that several requests are not sent again in step.
        wanted: seconds that the server asked for.

    """
    most = min(_FIRST_PAUSE * (1 << min(attempt, _DOUBLINGS)), _LONGEST_PAUSE)
    return wanted + most * (0.5 + chance / 2)


class FeedRequests(Protocol):
    """Stores a batch, or deletes ids, by one request each."""

    async def store(self, batch: FeedBatch) -> Sequence[WriteResult]: ...
    async def delete(self, ids: Sequence[str]) -> Sequence[WriteResult]: ...


@dataclass(kw_only=True)
class FeedTotals:
    """The outcomes of all rows."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """Outcomes of passages, or of documents where documents are deleted."""
    truncated: int = 0
    refused: int = 0
    """Rows that the front refused."""
    retries: int = 0
    passages: int = 0
    """Passages that were deleted with their documents."""

    def add(self, results: Sequence[WriteResult]) -> None:
        self.outcomes.update(each.outcome for each in results)
        self.truncated += sum(each.truncated for each in results)

    def add_documents(self, documents: Sequence[str], deleted: Sequence[str]) -> None:
        """Counts documents that were to be deleted, and their passages that were there."""
        found = {numbered(name)[0] for name in deleted}
        self.passages += len(deleted)
        self.outcomes.update(
            Outcome.STORED if each in found else Outcome.UNCHANGED for each in documents
        )


class Sender:
    """Sends batches. A batch waits for one in hand that stores or deletes the same passages."""

    def __init__(
        self,
        *,
        requests: FeedRequests,
        ledger: Ledger,
        patience: float,
        refused: Callable[[BadRow], None],
        stored: Callable[[int], None],
        waits: Callable[[WinnowError], None],
        skip: bool = False,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        """Sends nothing yet.

        Args:
            requests: makes the requests.
            ledger: keeps the line up to which everything is durable.
            patience: seconds for which a request is sent again.
            refused: called with each row that the front refused.
            stored: called with numbers of rows that are durable.
            waits: called with the error before a request is sent again.
            skip: whether refused rows are left out; else the first one is an error.
            rest: waits for a number of seconds.
            clock: the time in seconds.

        """
        self._requests, self._ledger, self._patience = requests, ledger, patience
        self._refused, self._stored, self._waits = refused, stored, waits
        self._skip = skip
        self._rest, self._clock = rest, clock
        self._in_hand: dict[asyncio.Task[None], Claim] = {}
        self.totals = FeedTotals()

    async def run(
        self, next_batch: Callable[[], Awaitable[FeedBatch | None]], at_once: int
    ) -> None:
        """Sends batches until there are none; raises the first error that no retry helps.

        Requests in hand end before it is raised, so that their outcomes are known.
        """
        try:
            while (batch := await next_batch()) is not None:
                claim = Claim.of(batch)
                await self._until(partial(self._room, claim, at_once))
                task = asyncio.create_task(self._send(batch, self._ledger.begin()))
                self._in_hand[task] = claim
            await self._until(lambda: not self._in_hand)
        except (WinnowError, OSError):
            await asyncio.gather(*self._in_hand, return_exceptions=True)
            raise
        finally:
            for task in self._in_hand:
                task.cancel()
            await asyncio.gather(*self._in_hand, return_exceptions=True)

    def _room(self, claim: Claim, at_once: int) -> bool:
        met = any(claim.meets(each) for each in self._in_hand.values())
        return not met and len(self._in_hand) < at_once

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            done, _ = await asyncio.wait(self._in_hand, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del self._in_hand[task]
            errors = [task.exception() for task in done]  # asyncio reports those not retrieved
            for error in filter(None, errors):
                raise error

    async def _send(self, batch: FeedBatch, number: int) -> None:
        batch = await self._store(batch)
        after, doubted = batch.after, False
        deleted: list[str] = []
        ahead = WHOLE_LOOK_AHEAD if batch.documents else _LOOK_AHEAD
        while after:
            after, doubted = await self._delete_some(after, doubted, ahead, deleted)
        self.totals.add_documents(batch.documents, deleted if batch.documents else ())
        self._ledger.end(number, batch.through)
        self._stored(len(batch.rows) + len(batch.documents))

    async def _delete_some(
        self, firsts: Sequence[str], doubted: bool, ahead: int, deleted: list[str]
    ) -> tuple[tuple[str, ...], bool]:
        """Deletes up to `ahead` passages of each document, beginning with its first id in `firsts`.

        Returns the next ids of the documents that may have more, and whether that is in doubt. It
        is in doubt after a retry: the first request may have deleted the passages already. After a
        doubtful result only passages that were there count, or it would never end. `deleted` gets
        the ids that were there.
        """
        each = max(min(ahead, _MOST_IDS // len(firsts)), 1)
        runs = [tuple(_run(first, each)) for first in firsts]
        tries = 0

        async def delete() -> Sequence[WriteResult]:
            nonlocal tries
            tries += 1
            return await self._requests.delete([name for run in runs for name in run])

        results = await self._tried(delete)
        doubtful = tries > 1 and not doubted
        there = [each.id for each in results if each.outcome is Outcome.STORED]
        deleted += there
        gone = {each.id for each in results} if doubtful else set(there)
        return tuple(following(run[-1]) for run in runs if not gone.isdisjoint(run)), doubtful

    async def _store(self, batch: FeedBatch) -> FeedBatch:
        """Stores a batch; returns it without the rows that were refused."""
        while batch.rows:
            try:
                self.totals.add(await self._tried(partial(self._requests.store, batch)))
            except InvalidRequestError as error:
                batch = self._without(batch, error)
            else:
                break
        return batch

    def _without(self, batch: FeedBatch, error: InvalidRequestError) -> FeedBatch:
        wrong = _rows(error.violations)
        if not wrong:
            raise error
        for number, why in sorted(wrong.items()):
            row = batch.rows[number]
            self._refused(BadRow(row.line, f"{why} (id {row.passage.id})"))
        if not self._skip:
            raise error
        self.totals.refused += len(wrong)
        kept = [row for number, row in enumerate(batch.rows) if number not in wrong]
        return replace(batch, rows=tuple(kept))

    async def _tried(
        self, request: Callable[[], Awaitable[Sequence[WriteResult]]]
    ) -> Sequence[WriteResult]:
        """Sends a request until it succeeds, or has failed for longer than `patience`."""
        began, attempt = self._clock(), 0
        while True:
            try:
                return await request()
            except _PASSING as error:
                if isinstance(error, _LASTING):
                    raise
                attempt += 1
                wanted = error.retry_after if isinstance(error, OverloadedError) else 0.0
                wait = backoff(attempt, random.random(), wanted)
                if self._clock() + wait - began > self._patience:
                    raise
                self._waits(error)
            self.totals.retries += 1
            await self._rest(wait)


def _run(first: str, count: int) -> Iterator[str]:
    """Ids of consecutive passages of a document."""
    for _ in range(count):
        yield first
        first = following(first)


def _rows(violations: Sequence[Violation]) -> dict[int, str]:
    """All violations of each row, by its place in the request."""
    wrong: dict[int, list[str]] = {}
    for each in violations:
        if found := _FIELD.fullmatch(each.field):
            said = f"{found[2] or 'the row'} {each.description}"
            wrong.setdefault(int(found[1]), []).append(said)
    return {number: "; ".join(said) for number, said in wrong.items()}
