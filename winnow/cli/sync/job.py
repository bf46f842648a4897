"""Runs `winnow sync`: compares a folder with an index, and sends the differences."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

from winnow.cli.feed.batches import FeedBatch, batch_rows, document_deletions
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.job import FeedProgress
from winnow.cli.feed.sending import MAX_DOCUMENTS, FeedTotals, FeedWriter, Sender
from winnow.documents.folder import FilePatterns, SkippedFile, list_files
from winnow.documents.formats.registry import is_supported
from winnow.documents.reading import Convert, DocumentRows, FolderScanner, ScannedFolder
from winnow.documents.syncing import SyncPlan, compare
from winnow.domain.listing import StoredDocument
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.errors import ArtefactError
from winnow.inference.fair_threads import FairThreads
from winnow.passages.rows import Row

_MAX_ROWS = 50
"""Maximum number of passages in a request."""
_CONCURRENCY = 4
"""Maximum number of requests in flight."""


class DocumentIndex(FeedWriter, Protocol):
    """An index with documents."""

    async def documents(self) -> Sequence[StoredDocument]:
        """Returns the documents of the index; raises WinnowError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """The folder and the options of a sync."""

    folder: Path
    patterns: FilePatterns = field(default_factory=FilePatterns)
    base_url: str = ""
    dry_run: bool = False
    """Whether to report the differences without sending them."""
    patience: float = 120.0
    """Seconds for which a failed request is retried."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync has done, or would do in a dry run."""

    plan: SyncPlan
    skipped: tuple[SkippedFile, ...]
    """Files that could not be indexed. Passages that the index has of them are kept."""
    totals: FeedTotals


class FolderSync:
    """Syncs a folder to an index, any number of times."""

    def __init__(self, options: SyncOptions, convert: Convert, progress: FeedProgress) -> None:
        self._options, self._convert, self._progress = options, convert, progress
        self._scanner = FolderScanner(options.base_url)

    async def run(self, index: DocumentIndex) -> SyncReport:
        """Syncs the folder once.

        Raises:
            ArtefactError: the folder cannot be read, or has no documents although the index has
                some.
            WinnowError: a request failed, and retries did not help. The same sync resumes.

        """
        threads = FairThreads(1, "documents")  # a separate thread: conversion takes long
        try:
            folder = await threads.run("", self._scan)
            indexed = await index.documents()
            plan = self._plan(folder, indexed)
            skipped = list(folder.skipped)
            totals = FeedTotals()
            if not self._options.dry_run:
                batches = self._batches(folder, plan, skipped)
                totals = await self._send(
                    index, lambda: threads.run("", partial(next, batches, None))
                )
        finally:
            threads.close(wait=False)
        names = {each.name for each in skipped if not each.is_indexed}
        return SyncReport(plan.without(names), tuple(skipped), totals)

    def _scan(self) -> ScannedFolder:
        listing = list_files(self._options.folder, self._options.patterns, is_supported)
        self._progress.start("checking files", len(listing.files))
        return self._scanner.scan(listing, self._progress.advance)

    def _plan(self, folder: ScannedFolder, indexed: Sequence[StoredDocument]) -> SyncPlan:
        if indexed and not folder.files:
            raise ArtefactError(
                f"{self._options.folder} has no documents, and the index has {len(indexed)}: check "
                "the folder. To remove all documents, use `winnow passages delete`"
            )
        return compare(folder.digests, indexed, [each.name for each in folder.skipped])

    def _batches(
        self, folder: ScannedFolder, plan: SyncPlan, skipped: list[SkippedFile]
    ) -> Iterator[FeedBatch]:
        """Yields the requests. First all passages are stored, then documents are removed."""
        rows = self._rows(folder, frozenset((*plan.added, *plan.replaced)), skipped)
        removed = (Row(0, Put(Passage(name, "", ""))) for name in plan.removed)
        return chain(
            batch_rows(rows, _MAX_ROWS, documents=True), document_deletions(removed, MAX_DOCUMENTS)
        )

    def _rows(
        self, folder: ScannedFolder, names: frozenset[str], skipped: list[SkippedFile]
    ) -> Iterator[Row]:
        """Converts documents and yields their passages. Adds failures to `skipped`."""
        self._progress.start("syncing documents", len(names))
        for number, document in enumerate(folder.read(self._convert, names), start=1):
            if isinstance(document, DocumentRows):
                yield from (Row(number, put) for put in document.puts)
                skipped += (
                    SkippedFile(document.name, note, is_indexed=True) for note in document.notes
                )
            else:
                skipped.append(document)
            self._progress.advance()

    async def _send(
        self, index: FeedWriter, next_batch: Callable[[], Awaitable[FeedBatch | None]]
    ) -> FeedTotals:
        sender = Sender(
            writer=index,
            ledger=Ledger(),
            patience=self._options.patience,
            on_refused=self._progress.bad_row,
            on_stored=lambda _count: None,
            on_retry=self._progress.show_retry,
        )
        await sender.run(next_batch, _CONCURRENCY)
        return sender.totals
