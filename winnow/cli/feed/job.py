"""One run of `winnow feed`: check the rows, send them, note the line up to which all is durable."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from winnow.cli.feed.batches import FeedBatch, batches, document_deletions
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.resuming import ResumeFile, Source
from winnow.cli.feed.sending import MOST_DOCUMENTS, FeedRequests, FeedTotals, Sender
from winnow.cli.feed.source import STDIN, rows
from winnow.errors import ArtefactError, WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.passages.progress import RowProgress
from winnow.passages.rows import BadRow, Row
from winnow.quoting import many

_NOTE_EVERY = 1.0
"""Seconds between two notes in the resume file."""
_SAY_EVERY = 10.0
"""Seconds between two lines with the reason of retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlan:
    """The source and the options of a feed."""

    file: Path
    form: str | None
    cut: bool
    delete: bool
    at_once: int
    most: int
    """The greatest number of rows in a request."""
    skip_bad_rows: bool
    patience: float

    @property
    def deletes_documents(self) -> bool:
        """Whether rows name documents, all passages of which are deleted."""
        return self.cut and self.delete


class BadFeedRowsError(ArtefactError):
    """The source has rows that are no passages."""


class FeedProgress(RowProgress):
    """Shows the progress of a feed; a context manager."""

    _said_at = float("-inf")

    def waits(self, error: WinnowError) -> None:
        """Prints why a request is sent again, now and then."""
        if time.monotonic() - self._said_at >= _SAY_EVERY:
            self._said_at = time.monotonic()
            self.say(f"trying again: {error}")


class FeedJob:
    """One feed, which may resume an interrupted one."""

    def __init__(self, plan: FeedPlan, resume_file: Path | None, progress: FeedProgress) -> None:
        """`resume_file`: holds the line up to which everything is durable; None for no file."""
        self.plan, self._progress = plan, progress
        self._file = ResumeFile(resume_file) if resume_file else None
        self._source: Source | None = None
        self._ledger = Ledger()
        self._noted_at = 0.0
        self.totals = FeedTotals()
        self.bad_rows = 0
        """The number of bad rows that were left out."""

    @property
    def line(self) -> int:
        return self._ledger.line

    def prepare(self, resume: bool) -> None:
        """Finds the line to begin with, and checks all rows of a file before any is sent.

        Raises:
            ArtefactError: the source cannot be read, has bad rows that are not to be skipped, or is
                not the source of the feed that is resumed.

        """
        plan = self.plan
        source = None if plan.file == STDIN else plan.file
        self._source = Source.of(source, plan.cut, plan.delete)
        if resume and self._file is not None:
            self._ledger = Ledger(self._file.read(source, plan.cut, plan.delete))
            if not self.line:
                self._progress.say(f"{self._file.path} does not exist: the feed starts with line 1")
        self._total = None if source is None else self._check()

    async def run(self, requests: FeedRequests) -> None:
        """Sends everything; raises the first error that no retry helps."""
        plan = self.plan
        sender = Sender(
            requests=requests,
            ledger=self._ledger,
            patience=plan.patience,
            refused=self._progress.bad_row,
            stored=self._stored,
            waits=self._progress.waits,
            skip=plan.skip_bad_rows,
        )
        self.totals = sender.totals
        self._progress.start("deleting" if plan.delete else "feeding", self._total)
        if plan.deletes_documents:
            made = document_deletions(self._good(), min(plan.most, MOST_DOCUMENTS))
        else:
            made = batches(self._good(), plan.most, plan.cut)
        # a thread that is left behind if it waits for standard input
        reader = FairThreads(1, "rows")
        try:
            await sender.run(lambda: reader.run("", partial(_next, made)), plan.at_once)
        finally:
            reader.close(wait=False)

    def leave(self) -> bool:
        """Notes the durable line of a feed that ends early; returns whether it was noted."""
        return self._source is not None and self._note()

    def finish(self) -> None:
        """Removes the resume file: everything is durable."""
        if self._file is not None:
            self._file.remove()

    def _rows(self) -> Iterator[Row | BadRow]:
        plan = self.plan
        return rows(plan.file, plan.form, plan.cut, plan.delete, self.line)

    def _check(self) -> int:
        """Names every bad row before anything is sent; returns the number of good rows."""
        self._progress.start("checking rows", None)
        good = bad = 0
        for row in self._rows():
            if isinstance(row, BadRow):
                bad += 1
                self._progress.bad_row(row)
            else:
                good += 1
            self._progress.advance()
        if bad and not self.plan.skip_bad_rows:
            raise BadFeedRowsError(
                f"{many(bad, 'bad row')}, and nothing was sent: mend what is named "
                "above, or leave it out with --skip-bad-rows"
            )
        if not good and not bad and not self.line:
            raise ArtefactError(
                f"{self.plan.file} has no {'ids' if self.plan.delete else 'passages'}"
            )
        return good

    def _good(self) -> Iterator[Row]:
        for row in self._rows():
            if isinstance(row, Row):
                yield row
            elif self.plan.skip_bad_rows:
                self._bad(row)
            else:
                raise BadFeedRowsError(
                    f"line {row.line}: {row.reason}: mend it, or leave it out with --skip-bad-rows"
                )

    def _bad(self, row: BadRow) -> None:
        self.bad_rows += 1
        if self._total is None:  # else it was named when rows were checked
            self._progress.bad_row(row)

    def _stored(self, count: int) -> None:
        self._progress.advance(count)
        if time.monotonic() - self._noted_at >= _NOTE_EVERY:
            self._note()

    def _note(self) -> bool:
        """Notes the durable line; returns whether there was one, and it could be noted."""
        if self._file is None or self._source is None or not self.line:
            return False
        self._noted_at = time.monotonic()
        try:
            self._file.note(self.line, self._source)
        except OSError as error:
            self._progress.say(
                f"cannot write {self._file.path}, so the feed cannot be resumed: {error.strerror}; "
                "choose another file with --resume-file"
            )
            self._file = None
            return False
        return True


def _next(made: Iterator[FeedBatch]) -> FeedBatch | None:
    return next(itertools.islice(made, 1), None)
