"""Runs `winnow feed`: checks the rows, sends them, and saves the last durable line."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from winnow.cli.feed.batches import batch_rows, document_deletions
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.resuming import FeedOptions, FeedSource, ResumeFile
from winnow.cli.feed.sending import MAX_DOCUMENTS, FeedTotals, FeedWriter, Sender
from winnow.cli.feed.source import STDIN, read_rows
from winnow.cli.retrying import RetryMessages
from winnow.domain.quota import StorageUse
from winnow.errors import ArtefactError
from winnow.inference.fair_threads import FairThreads
from winnow.passages.progress import RowProgress
from winnow.passages.rows import BadRow, Row
from winnow.quoting import many

_SAVE_INTERVAL = 1.0
"""Seconds between two writes of the resume file."""
_NEAR_SHARE = 0.9
"""Share of a quota from which a message says how much of it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPlan:
    """The source and the options of a feed."""

    file: Path
    form: str | None
    """Format of the rows, `jsonl` or `tsv`; None to choose by the name of the file."""
    cut: bool
    delete: bool
    concurrency: int
    """Maximum number of requests in flight."""
    max_rows: int
    """Maximum number of rows in a request."""
    skip_bad_rows: bool
    patience: float
    """Seconds in which a request must succeed; 0 to send it once."""
    index: str = ""
    """Name of the index; empty for the default index."""
    tenant: str = ""
    """Tenant of all rows; empty if the key decides it, or the index has no tenants."""

    @property
    def options(self) -> FeedOptions:
        """The options that must be the same to resume the feed."""
        return FeedOptions(self.cut, self.delete, self.index, self.tenant)

    @property
    def deletes_documents(self) -> bool:
        """Whether rows are documents to delete, with all their passages."""
        return self.cut and self.delete


class FeedProgress(RowProgress):
    """A context manager that shows the progress of a feed."""

    _warned = False

    def __init__(self) -> None:
        super().__init__()
        self.show_retry = RetryMessages(self.say).show

    def show_use(self, use: StorageUse) -> None:
        """Prints once that a tenant has used most of its quota."""
        for limit, fill in use.fill().items():
            if fill > _NEAR_SHARE and not self._warned:
                self._warned = True
                used, quota = getattr(use.used, limit.value), getattr(use.quota, limit.value)
                self.say(f"the tenant stores {used:,} {limit.value}, and its quota is {quota:,}")


class FeedJob:
    """One feed, which may resume an interrupted one."""

    def __init__(self, plan: FeedPlan, resume_file: Path | None, progress: FeedProgress) -> None:
        """`resume_file`: stores the line up to which all rows are durable; None for no file."""
        self.plan, self._progress = plan, progress
        self._file = ResumeFile(resume_file, plan.options) if resume_file else None
        self._source: FeedSource | None = None
        self._ledger = Ledger()
        self._saved_at = 0.0
        self.totals = FeedTotals()
        self.bad_rows = 0
        """Number of bad rows that were skipped."""

    def show_use(self, use: StorageUse) -> None:
        """Tells what the tenant stores, if it is near its quota."""
        self._progress.show_use(use)

    @property
    def line(self) -> int:
        """All rows up to this line are durable."""
        return self._ledger.line

    def prepare(self, resume: bool) -> None:
        """Finds the first line to send. Checks all rows of a file before any row is sent.

        Raises:
            ArtefactError: the source cannot be read, has bad rows that may not be skipped, or is
                not the source of the resumed feed.

        """
        plan = self.plan
        source = None if plan.file == STDIN else plan.file
        self._source = FeedSource.of(source)
        if resume and self._file is not None:
            self._ledger = Ledger(self._file.read(source))
            if not self.line:
                self._progress.say(f"{self._file.path} does not exist: the feed starts with line 1")
        self._total = None if source is None else self._check_rows()

    async def run(self, writer: FeedWriter) -> None:
        """Sends all rows. Raises the first error that retries cannot resolve."""
        plan = self.plan
        sender = Sender(
            writer=writer,
            ledger=self._ledger,
            patience=plan.patience,
            on_refused=self._progress.bad_row,
            on_stored=self._count_stored,
            on_retry=self._progress.show_retry,
            skip_refused=plan.skip_bad_rows,
        )
        self.totals = sender.totals
        self._progress.start("deleting" if plan.delete else "feeding", self._total)
        if plan.deletes_documents:
            feed_batches = document_deletions(self._good_rows(), min(plan.max_rows, MAX_DOCUMENTS))
        else:
            feed_batches = batch_rows(self._good_rows(), plan.max_rows, plan.cut)
        # a separate thread: if it still waits for standard input at the end, it is abandoned
        reader = FairThreads(1, "rows")
        try:
            await sender.run(
                lambda: reader.run("", partial(next, feed_batches, None)), plan.concurrency
            )
        finally:
            reader.close(wait=False)

    def save_for_resume(self) -> bool:
        """Saves the last durable line of a feed that ends early; returns whether it was saved."""
        return self._source is not None and self._save_line()

    def remove_resume_file(self) -> None:
        """Removes the resume file, because all rows are durable."""
        if self._file is not None:
            self._file.remove()

    def _read_rows(self) -> Iterator[Row | BadRow]:
        plan = self.plan
        return read_rows(plan.file, plan.form, plan.cut, plan.delete, self.line, tenant=plan.tenant)

    def _check_rows(self) -> int:
        """Reports every bad row; returns the number of good rows."""
        self._progress.start("checking rows", None)
        good = bad = 0
        for row in self._read_rows():
            if isinstance(row, BadRow):
                bad += 1
                self._progress.bad_row(row)
            else:
                good += 1
            self._progress.advance()
        if bad and not self.plan.skip_bad_rows:
            raise ArtefactError(
                f"{many(bad, 'bad row')}, and nothing was sent: correct the rows above, or use "
                "--skip-bad-rows to skip them"
            )
        if not good and not bad and not self.line:
            raise ArtefactError(
                f"{self.plan.file} has no {'ids' if self.plan.delete else 'passages'}"
            )
        return good

    def _good_rows(self) -> Iterator[Row]:
        for row in self._read_rows():
            if isinstance(row, Row):
                yield row
            elif self.plan.skip_bad_rows:
                self._skip_bad_row(row)
            else:
                raise ArtefactError(
                    f"line {row.line}: {row.reason}: correct it, or use --skip-bad-rows to skip it"
                )

    def _skip_bad_row(self, row: BadRow) -> None:
        self.bad_rows += 1
        if self._total is None:  # otherwise `_check_rows` has reported the row
            self._progress.bad_row(row)

    def _count_stored(self, count: int) -> None:
        self._progress.advance(count)
        if time.monotonic() - self._saved_at >= _SAVE_INTERVAL:
            self._save_line()

    def _save_line(self) -> bool:
        """Saves the last durable line, if there is one; returns whether it was saved."""
        if self._file is None or self._source is None or not self.line:
            return False
        self._saved_at = time.monotonic()
        try:
            self._file.write(self.line, self._source)
        except OSError as error:
            self._progress.say(
                f"cannot write {self._file.path}: {error.strerror}; the feed cannot be resumed, "
                "unless you choose another file with --resume-file"
            )
            self._file = None
            return False
        return True
