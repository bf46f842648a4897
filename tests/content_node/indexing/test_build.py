"""Building: atomic, resumable, honest about bad rows."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import PASSAGES, Recorder
from live_writes import put

import winnow.content_node.indexing.engine
from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.engine import LocalEngine, encode_pending, open_encoder
from winnow.content_node.indexing.plan import BuildListener, BuildPlan, DocumentSource
from winnow.content_node.indexing.stage_source import BadRowsError
from winnow.content_node.indexing.staged_tokens import StagedTokens
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.live.state import LiveState
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.retrieving import retrieve
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.folder import FilePatterns, list_files
from winnow.documents.formats.registry import is_supported
from winnow.documents.reading import FolderScanner
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name, shard_of
from winnow.domain.write import Outcome
from winnow.errors import ArtefactError, WinnowError
from winnow.passages.encoding import PassageEncoder


def content(index: Path, shards: int) -> dict[str, tuple[object, ...]]:
    """Everything that is stored, by passage id."""
    found = {}
    for shard in range(shards):
        path = index / shard_name(shard, shards) / "passages.sqlite"
        connection = sqlite3.connect(path)
        for row in connection.execute("SELECT * FROM passages"):
            found[row[1]] = (shard, *row)
        connection.close()
    return found


def test_every_passage_lies_in_the_shard_of_its_id(indexes: dict[int, Path]) -> None:
    for shards, index in indexes.items():
        stored = content(index, shards)
        assert set(stored) == {identifier for identifier, _, _ in PASSAGES}
        assert all(row[0] == shard_of(identifier, shards) for identifier, row in stored.items())


def test_rows_count_from_zero_and_match_the_graph(indexes: dict[int, Path]) -> None:
    for shard in range(3):
        opened = open_shard(indexes[3] / shard_name(shard, 3), ef=64)
        vectors = opened.store.vectors(opened.manifest.dimension)
        for row, vector in enumerate(vectors):
            asked = EncodedQuestion(text="", token_ids=(), vector=vector, bundle_fingerprint="")
            assert (
                retrieve(view_of(opened), asked, RetrievalDepth(passages=1), 0.0).hits[0].row == row
            )


class Interrupted(Recorder):
    """Ctrl-C after the first stored chunk."""

    def advance(self, steps: int) -> None:
        super().advance(steps)
        if self.stages[-1][0].startswith("encoding"):
            raise KeyboardInterrupt


def test_an_interrupted_build_goes_on_and_equals_an_uninterrupted_one(
    bundle: Bundle,
    passages_file: Path,
    indexes: dict[int, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(winnow.content_node.indexing.engine, "COMMIT_CHUNK", 5)
    monkeypatch.setattr(winnow.content_node.indexing.engine, "COMMIT_SECONDS", 1e9)
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=3, threads=2)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, Interrupted())
    assert not plan.target.exists()
    second = Recorder()
    build_index(plan, bundle, second)
    assert ("encoding passages", len(PASSAGES), 5) in second.stages
    assert content(plan.target, 3) == content(indexes[3], 3)
    assert not any(report.faults for report in verify_index(plan.target, 50, 0.95))
    assert not plan.target.with_name("index.partial").exists()
    assert not list(plan.target.glob("staging*"))


def bad_file(tmp_path: Path) -> Path:
    path = tmp_path / "p.jsonl"
    lines = [
        json.dumps({"id": "a", "text": "Fine."}),
        json.dumps({"id": "a", "text": "Twice."}),
        json.dumps({"id": "b", "text": ""}),
        json.dumps({"id": "c", "text": "Also fine."}),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_bad_rows_stop_the_build_and_are_all_named(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(source=bad_file(tmp_path), target=tmp_path / "index", shards=1, threads=1)
    with pytest.raises(BadRowsError, match="2 bad rows"):
        build_index(plan, bundle, recorder)
    assert [(row.line, row.reason) for row in recorder.bad_rows] == [
        (2, "duplicate id a"),
        (3, "text is empty: a passage needs a text (id b)"),
    ]
    assert not plan.target.exists()


def test_passages_in_other_languages_are_reported(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    """A build reports passages that the bundle's models do not read, unless they are few."""
    texts = ["Das Paket hat keine Abhängigkeiten und wird jede Nacht neu gebaut.", "A passage."]
    source = tmp_path / "passages.tsv"
    source.write_text("".join(f"{number}\t{text}\t\n" for number, text in enumerate(texts)))
    plan = BuildPlan(source=source, target=tmp_path / "index", shards=1, threads=1)
    build_index(plan, bundle, recorder)
    assert recorder.unread == [({"de": 1}, 2)]


def test_the_advice_to_skip_bad_rows_works_as_given(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(source=bad_file(tmp_path), target=tmp_path / "index", shards=1, threads=1)
    with pytest.raises(BadRowsError, match="--skip-bad-rows"):
        build_index(plan, bundle, recorder)
    assert build_index(replace(plan, skip_bad_rows=True), bundle, recorder).passages == 2


def test_bad_rows_can_be_left_out_and_are_counted(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(
        source=bad_file(tmp_path),
        target=tmp_path / "index",
        shards=2,
        threads=1,
        skip_bad_rows=True,
    )
    manifest = build_index(plan, bundle, recorder)
    assert (manifest.passages, manifest.bad_rows) == (2, 2)


def test_a_target_that_exists_is_never_touched(
    bundle: Bundle, passages_file: Path, indexes: dict[int, Path], recorder: Recorder
) -> None:
    plan = BuildPlan(source=passages_file, target=indexes[1], shards=1, threads=1)
    with pytest.raises(ArtefactError, match="exists already"):
        build_index(plan, bundle, recorder)


def test_a_partial_build_of_something_else_is_not_gone_on_with(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=2, threads=1)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, Interrupted())
    other = replace(plan, skip_bad_rows=True)
    with pytest.raises(ArtefactError, match="build with another --skip-bad-rows"):
        build_index(other, bundle, recorder)


def test_raw_documents_are_cut_into_passages(
    tmp_path: Path, bundle: Bundle, recorder: Recorder
) -> None:
    words = [f"word{n}" for n in range(250)]
    source = tmp_path / "documents.jsonl"
    source.write_text(json.dumps({"id": "doc", "title": "T", "text": " ".join(words)}) + "\n")
    plan = BuildPlan(
        source=source, target=tmp_path / "index", shards=1, threads=1, cut_documents=True
    )
    assert build_index(plan, bundle, recorder).passages == 2
    again = replace(plan, source=tmp_path / "index", target=tmp_path / "other")
    with pytest.raises(ArtefactError, match="cannot be cut"):
        build_index(again, bundle, recorder)


def test_a_passage_keeps_its_version_so_that_an_older_write_changes_nothing(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"id": "new", "text": "The newer text.", "version": 7}\n{"id": "none", "text": "Any."}\n'
    )
    build_index(
        BuildPlan(source=rows, target=tmp_path / "index", shards=1, threads=1), bundle, recorder
    )
    state = LiveState(open_shard(tmp_path / "index" / shard_name(0, 1), ef=64), "")
    conflict = state.write_conflict(["new", "none"])
    assert conflict.decide(put("new", "older", 6)).outcome is Outcome.OUTDATED
    assert conflict.decide(put("none", "older", 0)).outcome is Outcome.STORED
    assert conflict.decide(put("new", "newer still", 8)).outcome is Outcome.STORED


def test_metadata_is_stored_in_its_canonical_form(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "text": "Any.", "metadata": {"b": 1.0, "a": [2.5, true]}}\n')
    build_index(
        BuildPlan(source=rows, target=tmp_path / "index", shards=1, threads=1), bundle, recorder
    )
    store = open_shard(tmp_path / "index" / shard_name(0, 1), ef=64).store
    assert store.load([0])[0].passage.metadata == '{"a": [2.5, true], "b": 1}'


@contextmanager
def folder_plan(folder: Path, target: Path) -> Iterator[BuildPlan]:
    """The build of an index from the documents that a folder has now."""
    listing = list_files(folder, FilePatterns(), is_supported)
    scanned = FolderScanner("").scan(listing, lambda: None)
    with DocumentConverter(workers=1) as converter:
        documents = DocumentSource(scanned, converter.convert)
        yield BuildPlan(source=folder, target=target, threads=1, documents=documents)


def test_an_index_is_built_from_a_folder_of_documents(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    """A file that cannot be converted is reported, and the others are indexed."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Areas\n\nThe archive has three areas.\n\n# Sizes\n\nFew.")
    (folder / "b.txt").write_bytes(b"\x00\x01\x02")
    with folder_plan(folder, tmp_path / "index") as plan:
        manifest = build_index(plan, bundle, recorder)
    assert (manifest.passages, manifest.source) == (2, "docs")
    assert [each.name for each in recorder.skipped] == ["b.txt"]


def test_a_build_goes_on_if_its_folder_has_changed(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    """A file may be added while an interrupted build waits; another folder is an error.

    Passages of unchanged files are not encoded again.
    """
    folder, target = tmp_path / "docs", tmp_path / "index"
    folder.mkdir()
    (folder / "a.md").write_text("The archive has three areas.")
    with folder_plan(folder, target) as plan, pytest.raises(WinnowError, match="stopped"):
        build_index(plan, bundle, recorder, StoppedEngine())
    (folder / "b.md").write_text("Few.")
    other = shutil.copytree(folder, tmp_path / "other")
    with (
        folder_plan(other, target) as plan,
        pytest.raises(ArtefactError, match="build with another"),
    ):
        build_index(plan, bundle, recorder)
    with folder_plan(folder, target) as plan:
        assert build_index(plan, bundle, recorder).passages == 2
    assert recorder.changed == [(2, 1)]
    assert not (tmp_path / "index.partial").exists()


def test_a_resumed_build_uses_no_token_vectors_of_another_model(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    """Whichever engine resumes it: not every engine computes token vectors."""
    kept: list[bytes] = []

    class OtherModel:
        def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
            staging.expect_token_vectors("of another model")
            staging.store_vectors([], [(1, b"levels")])
            raise WinnowError("stopped")

    class OnlyVectors:
        def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
            with contextlib.closing(sqlite3.connect(staging.path)) as connection:
                kept.append(StagedTokens(connection).packed(PASSAGES[0][0], 0))
            LocalEngine(1).encode(staging, bundle, progress)

    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1)
    with pytest.raises(WinnowError, match="stopped"):
        build_index(plan, bundle, recorder, OtherModel())
    build_index(plan, bundle, recorder, OnlyVectors())
    assert kept == [b""]


@pytest.mark.bundle
def test_an_interrupted_build_keeps_token_vectors_that_were_computed_after_the_vectors(
    bundle: Bundle,
    passages_file: Path,
    tmp_path: Path,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They take as long as the vectors, and some engines return only vectors."""

    class OnlyVectors:
        def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
            encode_pending(staging, open_encoder(bundle), 1, progress.advance)

    class InterruptedWriting(Recorder):
        def start(self, stage: str, total: int | None, done: int = 0) -> None:
            if stage == "writing shards":
                raise KeyboardInterrupt
            super().start(stage, total, done)

    def fail(*_: object) -> None:
        raise AssertionError("the encoder was run again")

    target = tmp_path / "index"
    plan = BuildPlan(source=passages_file, target=target, shards=1, threads=1)
    interrupted = InterruptedWriting()
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, interrupted, OnlyVectors())
    assert ("computing token vectors", len(PASSAGES), 0) in interrupted.stages
    monkeypatch.setattr(PassageEncoder, "token_vectors", fail)
    build_index(plan, bundle, recorder, OnlyVectors())
    fingerprint = bundle.manifest.token_vectors_fingerprint
    opened = open_shard(target / shard_name(0, 1), 64, token_vectors_fingerprint=fingerprint)
    assert opened.token_vectors is not None


class StoppedEngine:
    """An engine that fails after it has encoded all passages."""

    def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
        LocalEngine(1).encode(staging, bundle, progress)
        raise WinnowError("stopped")
