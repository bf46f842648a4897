"""Runs `winnow sync`: compares a folder with an index, and sends the differences.

First all passages are stored. Then the surplus passages are deleted: those of removed documents,
and those that a replaced document no longer has. They are listed, since an interrupted sync may
have stored any passages of a document.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from winnow.cli.feed.batches import FeedBatch, batch_rows
from winnow.cli.feed.in_flight import Ledger
from winnow.cli.feed.job import FeedProgress
from winnow.cli.feed.sending import MAX_IDS, FeedTotals, FeedWriter, Sender
from winnow.documents.folder import FilePatterns, SkippedFile, list_files
from winnow.documents.formats.registry import is_supported
from winnow.documents.passages import ID_SEPARATOR
from winnow.documents.reading import Convert, DocumentRows, FolderScanner, ScannedFolder
from winnow.documents.syncing import SyncPlan, compare
from winnow.domain.listing import StoredDocument
from winnow.errors import ArtefactError
from winnow.inference.fair_threads import FairThreads
from winnow.passages.rows import Row
from winnow.quoting import many

_MAX_ROWS = 50
"""Maximum number of passages in a request."""
_CONCURRENCY = 4
"""Maximum number of requests in flight."""


class DocumentIndex(FeedWriter, Protocol):
    """An index with documents. All methods raise WinnowError.

    `limit`: maximum seconds of each request.
    Documents without a checksum are left out, since no sync or build of a folder stored them.
    """

    async def documents(self, limit: float) -> Sequence[StoredDocument]:
        """Returns the documents of the index."""

    async def uploaded(self, limit: float) -> Collection[str]:
        """Returns the names of the documents that users uploaded."""

    async def passage_ids(self, document: str, limit: float) -> Sequence[str]:
        """Returns the ids of the passages of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """The folder and the options of a sync."""

    folder: Path
    patterns: FilePatterns = field(default_factory=FilePatterns)
    base_url: str = ""
    dry_run: bool = False
    """Whether to report the differences without sending them."""
    patience: float = 120.0
    """Seconds in which a request must succeed; 0 to send it once."""
    replace_all: bool = False
    """Whether documents may be removed although the folder has none of the index's documents."""


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
        self.options, self._convert, self._progress = options, convert, progress
        self._scanner = FolderScanner(options.base_url)
        self._replaces_all = options.replace_all

    async def run(self, index: DocumentIndex) -> SyncReport:
        """Syncs the folder once.

        Raises:
            ArtefactError: the folder cannot be read, or has none of the documents of the index.
            WinnowError: a request failed, and retries did not help. The same sync resumes.

        """
        threads = FairThreads(1, "documents")  # a separate thread: conversion takes long
        sender = self._sender(index)
        try:
            folder = await threads.run("", self._scan)
            indexed = await sender.with_retries(index.documents)
            uploaded = await sender.with_retries(index.uploaded)
            plan = self._plan(folder, indexed, uploaded)
            skipped = list(folder.skipped)
            if not self.options.dry_run:
                lengths = dict.fromkeys(plan.removed, 0)
                batches = batch_rows(self._passage_rows(folder, plan, skipped, lengths), _MAX_ROWS)
                await sender.run(
                    lambda: threads.run("", partial(next, batches, None)), _CONCURRENCY
                )
                surplus = _surplus(index, sender, lengths)
                await sender.run(lambda: anext(surplus, None), _CONCURRENCY)
        finally:
            threads.close(wait=False)
        self._replaces_all = True  # the index is known to be of this folder
        names = {each.name for each in skipped if not each.is_indexed}
        return SyncReport(plan.without(names), tuple(skipped), sender.totals)

    def _scan(self) -> ScannedFolder:
        listing = list_files(self.options.folder, self.options.patterns, is_supported)
        self._progress.start("checking files", len(listing.files))
        return self._scanner.scan(listing, self._progress.advance)

    def _plan(
        self,
        folder: ScannedFolder,
        indexed: Sequence[StoredDocument],
        uploaded: Collection[str],
    ) -> SyncPlan:
        unknown = [each.name for each in folder.skipped]
        plan = compare(folder.digests, indexed, unknown=unknown, uploaded=uploaded)
        own = len(plan.removed) + len(plan.replaced) + len(plan.unchanged)
        if plan.removed and not folder.files:
            raise ArtefactError(
                f"{self.options.folder} has no documents, so all {many(own, 'document')} of the "
                "index would be removed: check the folder. To remove all documents, use `winnow "
                "passages delete`"
            )
        if plan.removed and len(plan.removed) == own and not self._replaces_all:
            raise ArtefactError(
                f"{self.options.folder} has none of the documents of the index, so all "
                f"{many(own, 'document')} would be removed: check the folder and the address. To "
                "replace all documents, use `winnow sync --replace-all`, or build a new index"
            )
        return plan

    def _passage_rows(
        self,
        folder: ScannedFolder,
        plan: SyncPlan,
        skipped: list[SkippedFile],
        lengths: dict[str, int],
    ) -> Iterator[Row]:
        """Converts documents and yields their passages.

        Adds failures to `skipped`, and the number of passages of replaced documents to `lengths`.
        """
        names, replaced = {*plan.added, *plan.replaced}, frozenset(plan.replaced)
        self._progress.start("syncing documents", len(names))
        for number, document in enumerate(folder.read(self._convert, names), start=1):
            if isinstance(document, DocumentRows):
                if document.name in replaced:
                    lengths[document.name] = len(document.puts)
                yield from (Row(number, put) for put in document.puts)
                skipped += (
                    SkippedFile(document.name, note, is_indexed=True) for note in document.notes
                )
            else:
                skipped.append(document)
            self._progress.advance()

    def _sender(self, index: FeedWriter) -> Sender:
        return Sender(
            writer=index,
            ledger=Ledger(),
            patience=self.options.patience,
            on_refused=self._progress.bad_row,
            on_stored=lambda _count: None,
            on_retry=self._progress.show_retry,
        )


async def _surplus(
    index: DocumentIndex, sender: Sender, lengths: Mapping[str, int]
) -> AsyncIterator[FeedBatch]:
    """Yields deletions of the passages that documents have beyond their number of passages."""
    surplus: list[str] = []
    for name, length in lengths.items():
        ids = await sender.with_retries(partial(index.passage_ids, name))
        kept = {f"{name}{ID_SEPARATOR}{number}" for number in range(length)}
        surplus += (each for each in ids if each not in kept)
        while len(surplus) >= MAX_IDS:
            yield FeedBatch((), 0, deletions=tuple(surplus[:MAX_IDS]))
            del surplus[:MAX_IDS]
    if surplus:
        yield FeedBatch((), 0, deletions=tuple(surplus))
