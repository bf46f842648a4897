"""Sends batches, several at a time, until each is durable.

This module knows requests and retries. It does not know where batches come from.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from winnow.cli.feed.batches import FeedBatch, next_passage_id, split_passage_id
from winnow.cli.feed.in_flight import Claim, Ledger
from winnow.cli.retrying import with_retries
from winnow.client import Outcome, WriteResult
from winnow.deadline import Clock
from winnow.errors import InvalidRequestError, Violation, WinnowError
from winnow.passages.rows import BadRow

_FIELD = re.compile(r"(?:passages|deletions)\[(\d+)\](?:\.(.+))?")
_LOOKAHEAD = 8
"""Passages of a document that one request deletes.

An interrupted request may have deleted any of them, so a gap of this size does not prove that the
document has ended.
"""
DOCUMENT_LOOKAHEAD = 100
"""Passages of a document that one request deletes, if whole documents are deleted."""
MAX_IDS = 1_000
"""Maximum number of ids in a request."""
MAX_DOCUMENTS = MAX_IDS // DOCUMENT_LOOKAHEAD
"""Maximum number of documents that one request deletes."""
Reply = TypeVar("Reply")


class FeedWriter(Protocol):
    """Sends requests that store or delete passages; raises WinnowError if a request fails.

    `limit`: maximum seconds that the request may take.
    """

    async def store(self, batch: FeedBatch, limit: float) -> Sequence[WriteResult]: ...
    async def delete(self, ids: Sequence[str], limit: float) -> Sequence[WriteResult]: ...


@dataclass(kw_only=True)
class FeedTotals:
    """Counts of the outcomes of all rows."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    """Passages by outcome; documents by outcome if documents are deleted."""
    truncated: int = 0
    """Passages that the encoder truncates."""
    refused: int = 0
    """Rows that the front node refused."""
    retries: int = 0
    """Requests that were sent again."""
    passages: int = 0
    """Passages that were deleted with their documents."""

    def add(self, results: Sequence[WriteResult]) -> None:
        self.outcomes.update(each.outcome for each in results)
        self.truncated += sum(each.truncated for each in results)

    def add_documents(self, documents: Sequence[str], deleted: Sequence[str]) -> None:
        """Counts documents to delete. `deleted`: ids of their passages that existed."""
        existing = {split_passage_id(name)[0] for name in deleted}
        self.passages += len(deleted)
        self.outcomes.update(
            Outcome.STORED if each in existing else Outcome.UNCHANGED for each in documents
        )


class Sender:
    """Sends batches. A batch waits for batches in flight that change the same passages."""

    def __init__(
        self,
        *,
        writer: FeedWriter,
        ledger: Ledger,
        patience: float,
        on_refused: Callable[[BadRow], None],
        on_stored: Callable[[int], None],
        on_retry: Callable[[WinnowError], None],
        skip_refused: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        """Sends nothing yet.

        Args:
            writer: sends the requests.
            ledger: tracks the line up to which all rows are durable.
            patience: seconds in which a request must succeed; 0 to send it once.
            on_refused: called with each row that the front node refused.
            on_stored: called with the number of rows of each stored batch.
            on_retry: called with the error before a retry.
            skip_refused: whether to skip refused rows; otherwise the first one is an error.
            sleep: waits for a number of seconds.
            clock: returns the time in seconds.

        """
        self._writer, self._ledger, self._patience = writer, ledger, patience
        self._on_refused, self._on_stored, self._on_retry = on_refused, on_stored, on_retry
        self._skip_refused = skip_refused
        self._sleep, self._clock = sleep, clock
        self._in_flight: dict[asyncio.Task[None], Claim] = {}
        self.totals = FeedTotals()

    async def run(
        self, next_batch: Callable[[], Awaitable[FeedBatch | None]], concurrency: int
    ) -> None:
        """Sends batches until `next_batch` returns None, at most `concurrency` at a time.

        Raises the first error that retries cannot resolve. Batches in flight finish before it is
        raised, so that their outcomes are known.
        """
        try:
            while (batch := await next_batch()) is not None:
                claim = Claim.of(batch)
                await self._wait_until(partial(self._may_send, claim, concurrency))
                task = asyncio.create_task(self._send(batch, self._ledger.begin_batch()))
                self._in_flight[task] = claim
            await self._wait_until(lambda: not self._in_flight)
        except (WinnowError, OSError):
            await asyncio.gather(*self._in_flight, return_exceptions=True)
            raise
        finally:
            for task in self._in_flight:
                task.cancel()
            await asyncio.gather(*self._in_flight, return_exceptions=True)

    async def with_retries(self, request: Callable[[float], Awaitable[Reply]]) -> Reply:
        """Sends a request until it succeeds, or until `patience` is over.

        `request` gets the maximum seconds that it may take.
        """

        def count(error: WinnowError) -> None:
            self._on_retry(error)
            self.totals.retries += 1

        return await with_retries(
            request,
            patience=self._patience,
            on_retry=count,
            sleep=self._sleep,
            clock=self._clock,
        )

    def _may_send(self, claim: Claim, concurrency: int) -> bool:
        conflict = any(claim.conflicts_with(each) for each in self._in_flight.values())
        return not conflict and len(self._in_flight) < concurrency

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            done, _ = await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del self._in_flight[task]
            # retrieve the exceptions of all tasks, so that asyncio does not warn about them
            errors = [task.exception() for task in done]
            for error in filter(None, errors):
                raise error

    async def _send(self, batch: FeedBatch, number: int) -> None:
        batch = await self._store(batch)
        if batch.deletions:
            await self.with_retries(partial(self._writer.delete, batch.deletions))
        starts, in_doubt = batch.deletion_starts, False
        deleted: list[str] = []
        lookahead = DOCUMENT_LOOKAHEAD if batch.documents else _LOOKAHEAD
        while starts:
            starts, in_doubt = await self._delete_some(starts, in_doubt, lookahead, deleted)
        self.totals.add_documents(batch.documents, deleted if batch.documents else ())
        self._ledger.finish_batch(number, batch.last_line)
        self._on_stored(len(batch.rows) + len(batch.documents))

    async def _delete_some(
        self, starts: Sequence[str], was_in_doubt: bool, lookahead: int, deleted: list[str]
    ) -> tuple[tuple[str, ...], bool]:
        """Deletes up to `lookahead` passages of each document, from its id in `starts` on.

        Adds the ids of passages that existed to `deleted`. Returns the next id of each document
        that may have more passages, and whether this result is in doubt.

        A result is in doubt after a retry, because the failed request may have deleted passages.
        Then every document may have more passages. If the result before was in doubt, only
        documents with passages that existed may have more: otherwise the deletion would never end.
        """
        count = max(min(lookahead, MAX_IDS // len(starts)), 1)
        runs = [tuple(_consecutive_ids(start, count)) for start in starts]
        attempts = 0

        async def delete(limit: float) -> Sequence[WriteResult]:
            nonlocal attempts
            attempts += 1
            return await self._writer.delete([name for run in runs for name in run], limit)

        results = await self.with_retries(delete)
        in_doubt = attempts > 1 and not was_in_doubt
        existing = [each.id for each in results if each.outcome is Outcome.STORED]
        deleted += existing
        removed = {each.id for each in results} if in_doubt else set(existing)
        next_ids = (next_passage_id(run[-1]) for run in runs if not removed.isdisjoint(run))
        return tuple(next_ids), in_doubt

    async def _store(self, batch: FeedBatch) -> FeedBatch:
        """Stores a batch; returns it without the refused rows."""
        while batch.rows:
            try:
                self.totals.add(await self.with_retries(partial(self._writer.store, batch)))
            except InvalidRequestError as error:
                batch = self._drop_refused(batch, error)
            else:
                break
        return batch

    def _drop_refused(self, batch: FeedBatch, error: InvalidRequestError) -> FeedBatch:
        """Reports the refused rows; returns the batch without them, or raises the error."""
        reasons = _reasons_by_row(error.violations)
        if not reasons:
            raise error
        for number, reason in sorted(reasons.items()):
            row = batch.rows[number]
            self._on_refused(BadRow(row.line, f"{reason} (id {row.passage.id})"))
        if not self._skip_refused:
            raise error
        self.totals.refused += len(reasons)
        accepted = [row for number, row in enumerate(batch.rows) if number not in reasons]
        return replace(batch, rows=tuple(accepted))


def _consecutive_ids(start: str, count: int) -> Iterator[str]:
    """Ids of consecutive passages of a document."""
    for _ in range(count):
        yield start
        start = next_passage_id(start)


def _reasons_by_row(violations: Sequence[Violation]) -> dict[int, str]:
    """All violations of each row, by its index in the request."""
    reasons: dict[int, list[str]] = {}
    for each in violations:
        if match := _FIELD.fullmatch(each.field):
            reason = f"{match[2] or 'the row'} {each.description}"
            reasons.setdefault(int(match[1]), []).append(reason)
    return {number: "; ".join(lines) for number, lines in reasons.items()}
