"""One run of `winnow feed`: check the rows, send them, note how far it is."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from winnow.cli.feed.batches import FeedBatch, batches, document_deletions
from winnow.cli.feed.ledger import Ledger
from winnow.cli.feed.place import FeedFile, Source
from winnow.cli.feed.sending import MOST_DOCUMENTS, Feeds, Sender, Totals
from winnow.cli.feed.source import STDIN, rows
from winnow.cli.feed.telling import FeedProgress
from winnow.errors import ArtefactError
from winnow.inference.fair_threads import FairThreads
from winnow.passages.rows import BadRow, Row
from winnow.quoting import many

_NOTE_EVERY = 1.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """What to feed."""

    file: Path
    form: str | None
    cut: bool
    delete: bool
    at_once: int
    most: int
    """Rows of a request."""
    skip_bad_rows: bool
    patience: float

    @property
    def deletes_documents(self) -> bool:
        """Whether rows name documents, all passages of which are deleted."""
        return self.cut and self.delete


class BadFeedRowsError(ArtefactError):
    """The source has rows that are no passages."""


class FeedJob:
    """A feed."""

    def __init__(self, plan: FeedPlan, noted: Path | None, progress: FeedProgress) -> None:
        """`noted`: where it is noted how far it is; None for nowhere."""
        self.plan, self._progress = plan, progress
        self._place = FeedFile(noted) if noted else None
        self._source: Source | None = None
        self._ledger = Ledger()
        self._noted_at = 0.0
        self.totals = Totals()
        self.bad_rows = 0
        """That are left out."""

    @property
    def line(self) -> int:
        """Up to which all is durable."""
        return self._ledger.line

    def prepare(self, resume: bool) -> None:
        """Finds where to begin, and looks at all rows of a file before any is sent.

        Raises:
            ArtefactError: the source cannot be read, has bad rows that are not to be skipped, or is
                not what was fed before.

        """
        plan = self.plan
        source = None if plan.file == STDIN else plan.file
        self._source = Source.of(source, plan.cut, plan.delete)
        if resume and self._place is not None:
            self._ledger = Ledger(self._place.read(source, plan.cut, plan.delete))
            if not self.line:
                self._progress.say(
                    f"{self._place.path} is not there, so nothing was noted: begins with line 1"
                )
        self._total = None if source is None else self._check()

    async def run(self, feeds: Feeds) -> None:
        """Sends everything; raises the first error that no waiting mends."""
        plan = self.plan
        sender = Sender(
            feeds,
            self._ledger,
            plan.patience,
            self._progress.bad_row,
            self._stored,
            self._progress.waits,
            plan.skip_bad_rows,
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
        """Notes how far it is when it ends early; whether that was noted."""
        return self._source is not None and self._note()

    def finish(self) -> None:
        """All is durable."""
        if self._place is not None:
            self._place.remove()

    def _rows(self) -> Iterator[Row | BadRow]:
        plan = self.plan
        return rows(plan.file, plan.form, plan.cut, plan.delete, self.line)

    def _check(self) -> int:
        """Names every bad row before anything is sent; how many rows are good."""
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
        """Whether there is something to go on with, and it could be noted."""
        if self._place is None or self._source is None or not self.line:
            return False
        self._noted_at = time.monotonic()
        try:
            self._place.note(self.line, self._source)
        except OSError as error:
            self._progress.say(
                f"cannot note in {self._place.path} how far it is: {error.strerror}; choose "
                "another place with --resume-file"
            )
            self._place = None
            return False
        return True


def _next(made: Iterator[FeedBatch]) -> FeedBatch | None:
    return next(itertools.islice(made, 1), None)
