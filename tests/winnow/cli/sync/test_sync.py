"""After a sync, an index has the passages of the folder's documents, and no others."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from winnow.cli.feed.batches import FeedBatch
from winnow.cli.feed.job import FeedProgress
from winnow.cli.sync.job import DocumentIndex, FolderSync, SyncOptions, SyncReport
from winnow.cli.sync.watching import keep_synced
from winnow.client import Outcome, Position, WriteResult
from winnow.documents.document import BlockKind, Document, DocumentBuilder
from winnow.documents.failures import ConversionFailure, FailureReason
from winnow.documents.passages import UPLOADED
from winnow.domain.listing import StoredDocument
from winnow.errors import ArtefactError, UnavailableError, WinnowError


class FakeIndex:
    """An index in memory, which can fail and be interrupted."""

    def __init__(self) -> None:
        self.passages: dict[str, dict[str, object]] = {}
        self.stored = 0
        """Number of passages that were stored."""
        self.requests_until_failure: int | None = None
        self.failure: WinnowError | None = None

    async def documents(self, limit: float) -> Sequence[StoredDocument]:
        if self.failure:
            failure, self.failure = self.failure, None
            raise failure
        metadata: dict[str, list[dict[str, object]]] = {}
        for passage in self.passages.values():
            metadata.setdefault(str(passage["document"]), []).append(passage)
        return [_indexed(name, passages) for name, passages in metadata.items()]

    async def uploaded(self, limit: float) -> Collection[str]:
        return {
            str(each["document"])
            for each in self.passages.values()
            if str(each["document_hash"]).startswith(UPLOADED)
        }

    async def passage_ids(self, document: str, limit: float) -> Sequence[str]:
        return [name for name, each in self.passages.items() if each["document"] == document]

    async def store(self, batch: FeedBatch, limit: float) -> Sequence[WriteResult]:
        self._count_request()
        for row in batch.rows:
            self.passages[row.passage.id] = {
                **json.loads(row.passage.metadata),
                "text": row.passage.text,
            }
            self.stored += 1
        return [_result(row.passage.id, Outcome.STORED) for row in batch.rows]

    async def delete(self, ids: Sequence[str], limit: float) -> Sequence[WriteResult]:
        self._count_request()
        return [
            _result(each, Outcome.STORED if self.passages.pop(each, None) else Outcome.UNCHANGED)
            for each in ids
        ]

    def texts(self) -> dict[str, str]:
        return {name: str(passage["text"]) for name, passage in sorted(self.passages.items())}

    def _count_request(self) -> None:
        if self.requests_until_failure == 0:
            raise ArtefactError("interrupted")
        if self.requests_until_failure is not None:
            self.requests_until_failure -= 1


def _indexed(name: str, passages: Sequence[dict[str, object]]) -> StoredDocument:
    digests = {str(each["document_hash"]) for each in passages}
    expected = {int(str(each["document_passages"])) for each in passages}
    return StoredDocument(
        name=name,
        hash=digests.pop() if len(digests) == 1 else "",
        passages=len(passages),
        expected=expected.pop() if len(expected) == 1 else None,
    )


def _result(passage_id: str, outcome: Outcome) -> WriteResult:
    return WriteResult(id=passage_id, outcome=outcome, position=Position(0, 1), truncated=False)


def convert(paths: Iterable[Path]) -> Iterator[tuple[Path, Document | ConversionFailure]]:
    """Makes a section, and so a passage, of each line. Fails for a file with the word `broken`."""
    for path in paths:
        lines = path.read_text().splitlines()
        if "broken" in lines:
            yield path, ConversionFailure(FailureReason.DAMAGED, "line 1 is broken")
            continue
        builder = DocumentBuilder()
        for line in lines:
            builder.add(BlockKind.HEADING, "Section", level=1)
            builder.add(BlockKind.PARAGRAPH, line)
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        yield path, replace(builder.build(""), sha256=content)


class Folder:
    """A folder that is synced to a fake index."""

    def __init__(self, path: Path) -> None:
        self.path, self.index = path, FakeIndex()

    def write(self, name: str, *lines: str) -> None:
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines))

    def job(
        self, *, dry_run: bool = False, base_url: str = "", replace_all: bool = False
    ) -> FolderSync:
        options = SyncOptions(
            folder=self.path,
            dry_run=dry_run,
            base_url=base_url,
            patience=0,
            replace_all=replace_all,
        )
        return FolderSync(options, convert, FeedProgress())

    async def sync(
        self, *, dry_run: bool = False, base_url: str = "", replace_all: bool = False
    ) -> SyncReport:
        job = self.job(dry_run=dry_run, base_url=base_url, replace_all=replace_all)
        return await job.run(self.index)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("a.txt", "one", "two", "three")
    made.write("dir/b.txt", "four")
    return made


async def test_documents_are_added_replaced_and_removed(folder: Folder) -> None:
    """A document that became shorter loses its last passages."""
    await folder.sync()
    assert folder.index.texts() == {
        "a.txt#0": "one",
        "a.txt#1": "two",
        "a.txt#2": "three",
        "dir/b.txt#0": "four",
    }
    folder.write("a.txt", "ONE")
    folder.write("c.txt", "five")
    (folder.path / "dir/b.txt").unlink()
    report = await folder.sync()
    assert (report.plan.added, report.plan.replaced, report.plan.removed) == (
        ("c.txt",),
        ("a.txt",),
        ("dir/b.txt",),
    )
    assert folder.index.texts() == {"a.txt#0": "ONE", "c.txt#0": "five"}


async def test_unchanged_documents_are_not_sent(folder: Folder) -> None:
    """A second sync stores nothing."""
    await folder.sync()
    before = folder.index.stored
    report = await folder.sync()
    assert report.plan.unchanged == ("a.txt", "dir/b.txt")
    assert folder.index.stored == before


async def test_a_dry_run_changes_nothing(folder: Folder) -> None:
    """It reports the same differences as a sync."""
    report = await folder.sync(dry_run=True)
    assert report.plan.added == ("a.txt", "dir/b.txt")
    assert folder.index.texts() == {}


@pytest.mark.parametrize("requests", [0, 1, 2])
async def test_an_interrupted_sync_is_resumed(folder: Folder, requests: int) -> None:
    """The same command completes a sync, no matter which request failed."""
    await folder.sync()
    folder.write("a.txt", "ONE", "TWO")
    folder.write("c.txt", *(f"line {number}" for number in range(60)))
    (folder.path / "dir/b.txt").unlink()
    folder.index.requests_until_failure = requests
    with pytest.raises(ArtefactError, match="interrupted"):
        await folder.sync()
    folder.index.requests_until_failure = None
    await folder.sync()
    expected = {f"c.txt#{number}": f"line {number}" for number in range(60)}
    assert folder.index.texts() == {"a.txt#0": "ONE", "a.txt#1": "TWO", **expected}


@pytest.mark.parametrize("lines", [["short"], []])
async def test_passages_of_an_interrupted_sync_are_removed(
    folder: Folder, lines: list[str]
) -> None:
    """Also if only the last passages of a long document were stored, and it shrinks or goes."""
    folder.write("c.txt", *(f"line {number}" for number in range(300)))
    await folder.sync()
    for number in range(290):
        del folder.index.passages[f"c.txt#{number}"]
    folder.write("c.txt", *lines)
    if not lines:
        (folder.path / "c.txt").unlink()
    await folder.sync()
    kept = {name: text for name, text in folder.index.texts().items() if name.startswith("c.txt")}
    assert kept == {f"c.txt#{number}": line for number, line in enumerate(lines)}
    assert len((await folder.sync()).plan.unchanged) == 2 + len(lines)


async def test_an_uploaded_document_stays(folder: Folder) -> None:
    """A file of its name replaces it."""
    for number in range(3):
        folder.index.passages[f"notes.md#{number}"] = {
            "document": "notes.md",
            "document_hash": f"{UPLOADED}1",
            "document_passages": 3,
            "text": "uploaded",
        }
    assert (await folder.sync()).plan.removed == ()
    assert folder.index.texts()["notes.md#2"] == "uploaded"
    folder.write("notes.md", "notes")
    await folder.sync()
    assert [name for name in folder.index.texts() if name.startswith("notes")] == ["notes.md#0"]


async def test_a_file_that_is_too_large_is_not_read(folder: Folder) -> None:
    """Not even for its checksum. The index keeps what it has of it."""
    await folder.sync()
    os.truncate(folder.path / "a.txt", 2 << 40)
    report = await folder.sync()
    assert [each.reason for each in report.skipped] == [
        "too large: the file has 2,199,023,255,552 bytes, at most 200,000,000 are read"
    ]
    assert len(folder.index.texts()) == 4


async def test_a_file_that_changes_while_it_is_read_is_synced_again(folder: Folder) -> None:
    """Its passages have the checksum of the content that was read."""

    def convert_later(paths: Iterable[Path]) -> Iterator[tuple[Path, Document | ConversionFailure]]:
        folder.write("a.txt", "while it is read")
        yield from convert(paths)
        folder.write("a.txt", "one", "two", "three")

    options = SyncOptions(folder=folder.path, patience=0)
    await FolderSync(options, convert_later, FeedProgress()).run(folder.index)
    assert folder.index.texts()["a.txt#0"] == "while it is read"
    assert (await folder.sync()).plan.replaced == ("a.txt",)
    assert folder.index.texts()["a.txt#0"] == "one"


async def test_another_folder_does_not_replace_all_documents(folder: Folder) -> None:
    """A wrong folder or address is a mistake, unless the caller wants it."""
    await folder.sync()
    (folder.path / "a.txt").rename(folder.path / "c.txt")
    (folder.path / "dir/b.txt").unlink()
    with pytest.raises(ArtefactError, match="so all 2 documents would be removed"):
        await folder.sync()
    assert len(folder.index.texts()) == 4
    await folder.sync(replace_all=True)
    assert list(folder.index.texts()) == ["c.txt#0", "c.txt#1", "c.txt#2"]


async def test_a_document_that_cannot_be_converted_keeps_its_passages(folder: Folder) -> None:
    """The file is named with the reason, and others are synced."""
    await folder.sync()
    folder.write("a.txt", "broken")
    folder.write("dir/b.txt", "FOUR")
    report = await folder.sync()
    assert [(each.name, each.reason) for each in report.skipped] == [
        ("a.txt", "damaged: line 1 is broken")
    ]
    assert folder.index.texts()["a.txt#0"] == "one"
    assert folder.index.texts()["dir/b.txt#0"] == "FOUR"


async def test_an_empty_folder_removes_nothing(folder: Folder) -> None:
    """A folder that is not mounted does not empty the index."""
    await folder.sync()
    for path in folder.path.rglob("*.txt"):
        path.unlink()
    with pytest.raises(
        ArtefactError, match="has no documents, so all 2 documents of the index would be removed"
    ):
        await folder.sync()
    assert len(folder.index.texts()) == 4


async def test_another_base_url_replaces_all_documents(folder: Folder) -> None:
    """Citations link to the new URL."""
    await folder.sync()
    report = await folder.sync(base_url="https://example.org/docs")
    assert len(report.plan.replaced) == 2
    urls = {each["url"] for each in folder.index.passages.values()}
    assert urls == {"https://example.org/docs/a.txt", "https://example.org/docs/dir/b.txt"}


async def test_the_list_of_documents_is_asked_for_again(folder: Folder) -> None:
    folder.index.failure = UnavailableError("the front restarts")
    options = SyncOptions(folder=folder.path, patience=60)
    await FolderSync(options, convert, FeedProgress()).run(folder.index)
    assert {"a.txt#0", "dir/b.txt#0"} <= folder.index.texts().keys()


async def test_a_watched_folder_is_synced_after_each_change(folder: Folder) -> None:
    """A sync that fails is repeated."""
    reports: list[SyncReport] = []
    errors: list[WinnowError] = []
    folder.index.failure = UnavailableError("the front is away")

    async def changes() -> AsyncIterator[object]:
        folder.write("a.txt", "ONE")
        yield "a change"

    pauses: list[float] = []

    async def no_pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    await keep_synced(
        folder.job(),
        folder.index,
        changes(),
        on_report=reports.append,
        on_error=errors.append,
        sleep=no_pause,
    )
    assert len(errors) == 1
    assert len(reports) == 2
    assert pauses == [10, 2, 2]
    assert folder.index.texts() == {"a.txt#0": "ONE", "dir/b.txt#0": "four"}


class CheckingSync(FolderSync):
    """A sync that checks that a watch has begun."""

    watch_began = False

    async def run(self, index: DocumentIndex) -> SyncReport:
        assert self.watch_began, "a change between the sync and the watch would be missed"
        return await super().run(index)


async def test_the_watch_begins_before_the_first_sync(folder: Folder) -> None:
    sync = CheckingSync(SyncOptions(folder=folder.path), convert, FeedProgress())

    async def changes() -> AsyncIterator[object]:
        sync.watch_began = True
        for change in list[object]():
            yield change

    def fail(error: WinnowError) -> None:
        raise error

    async def no_pause(_seconds: float) -> None:
        pass

    reports: list[SyncReport] = []
    await keep_synced(
        sync, folder.index, changes(), on_report=reports.append, on_error=fail, sleep=no_pause
    )
    assert len(reports) == 1
