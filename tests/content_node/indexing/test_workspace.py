"""What a build that fails leaves behind, and whom it lets near."""

import errno
import fcntl
import gzip
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conftest import PASSAGES, Recorder

import winnow.content_node.indexing.builder
from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.staging import Staging
from winnow.errors import ArtefactError


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@dataclass
class Failing(Recorder):
    """Raises at the first step of a stage."""

    stage: str = "reading"
    error: type[BaseException] = KeyboardInterrupt

    def advance(self, steps: int) -> None:
        super().advance(steps)
        if self.stages[-1][0].startswith(self.stage):
            raise self.error


def empty(path: Path) -> None:
    path.touch()


def bad(path: Path) -> None:
    path.write_text("no passage\n")


def nothing(_path: Path) -> None:
    return None


def cut_off(path: Path) -> None:
    path.write_bytes(gzip.compress(b"1\ta\tT\n" * 1000)[:40])


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("p.tsv", nothing, "no file"),
        ("p.tsv", empty, "has no passages"),
        ("p.tsv", bad, "1 bad row"),
        ("p.tsv", Path.mkdir, "is neither a file nor an index"),
        ("p.tsv", os.mkfifo, "is not a regular file"),
        ("p.pdf", empty, "unknown format"),
        ("p.tsv.gz", bad, "cannot read"),
        ("p.tsv.gz", cut_off, "cannot read"),
        ("p.tsv.zst", bad, "cannot read"),
    ],
)
def test_a_source_without_passages_leaves_nothing_behind(
    bundle: Bundle,
    tmp_path: Path,
    recorder: Recorder,
    name: str,
    make: Callable[[Path], None],
    said: str,
) -> None:
    make(tmp_path / name)
    before = tree(tmp_path)
    with pytest.raises(ArtefactError, match=said):
        build_index(
            BuildPlan(source=tmp_path / name, target=tmp_path / "a" / "b", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert tree(tmp_path) == before
    assert recorder.kept_in == []


@pytest.mark.parametrize("out", [".", "..", "/", ""])
def test_a_target_without_a_name_of_its_own_exists_already(
    bundle: Bundle, passages_file: Path, recorder: Recorder, out: str
) -> None:
    with pytest.raises(ArtefactError, match="exists already"):
        build_index(
            BuildPlan(source=passages_file, target=Path(out), shards=1, threads=1), bundle, recorder
        )


def test_only_bad_rows_are_no_passages_even_if_they_are_skipped(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    bad(tmp_path / "p.tsv")
    plan = BuildPlan(
        source=tmp_path / "p.tsv",
        target=tmp_path / "index",
        shards=1,
        threads=1,
        skip_bad_rows=True,
    )
    with pytest.raises(ArtefactError, match="has no passages"):
        build_index(plan, bundle, recorder)
    assert tree(tmp_path) == {"p.tsv"}


def test_partly_read_passages_are_removed_and_partly_encoded_ones_kept(
    bundle: Bundle, passages_file: Path, tmp_path: Path
) -> None:
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=2, threads=1)
    reading = Failing(stage="reading")
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, reading)
    assert tree(tmp_path) == set()
    for stage in ("encoding", "counting", "writing"):
        failing = Failing(stage=stage)
        with pytest.raises(KeyboardInterrupt):
            build_index(plan, bundle, failing)
        assert failing.kept_in == [tmp_path / "index.partial"]
    last = Recorder()
    build_index(plan, bundle, last)
    assert ("encoding passages", len(PASSAGES), len(PASSAGES)) in last.stages
    assert {path.name for path in tmp_path.iterdir()} == {"index"}


def test_a_build_killed_while_reading_is_restarted_by_any_plan(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    partial = tmp_path / "index.partial"
    partial.mkdir()
    Staging(partial / "staging.sqlite").close()
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=3, threads=1)
    assert build_index(plan, bundle, recorder).passages == len(PASSAGES)
    assert not partial.exists()


def test_a_build_that_another_plan_began_is_left_as_it_is(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=2, threads=1)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, Failing(stage="encoding"))
    before = tree(tmp_path)
    with pytest.raises(ArtefactError, match="use the same value to resume"):
        build_index(replace(plan, skip_bad_rows=True), bundle, recorder)
    assert tree(tmp_path) == before
    assert recorder.kept_in == []


def test_files_of_a_user_with_the_name_of_a_workspace_are_not_touched(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    own = tmp_path / "index.partial" / "index"
    own.mkdir(parents=True)
    (own / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(ArtefactError, match="is not a file of a build"):
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert tree(tmp_path) == before


def test_an_empty_directory_of_a_user_stays(
    bundle: Bundle, tmp_path: Path, recorder: Recorder
) -> None:
    bad(tmp_path / "p.tsv")
    (tmp_path / "index.partial").mkdir()
    with pytest.raises(ArtefactError):
        build_index(
            BuildPlan(source=tmp_path / "p.tsv", target=tmp_path / "index", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert tree(tmp_path) == {"p.tsv", "index.partial"}


def test_two_builds_do_not_write_the_same_index(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    partial = tmp_path / "index.partial"
    partial.mkdir()
    with (partial / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArtefactError, match="another build is writing"):
            build_index(
                BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
                bundle,
                recorder,
            )
        assert tree(tmp_path) == {"index.partial", "index.partial/lock"}
    build_index(
        BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
        bundle,
        recorder,
    )
    assert not partial.exists()


@pytest.mark.parametrize("target", ["file/index", "file/deep/index", "broken"])
def test_a_target_that_cannot_be_made_is_one_line(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder, target: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)
    with pytest.raises(ArtefactError, match="choose another directory") as raised:
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / target, shards=1, threads=1),
            bundle,
            recorder,
        )
    assert "\n" not in str(raised.value)
    assert tree(tmp_path) == before


def system(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device: make room"),
        (errno.EROFS, "Read-only file system: choose a directory that you may write to"),
        (errno.EBUSY, "busy: choose another directory"),
    ],
)
def test_an_error_of_the_system_names_path_reason_and_what_to_do(
    bundle: Bundle,
    passages_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    advice: str,
) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise system(number, path)

    monkeypatch.setattr(winnow.content_node.indexing.builder, "write_manifest", refuse)
    recorder = Recorder()
    with pytest.raises(ArtefactError, match=f"cannot write .*/index.json: .*{advice}"):
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert recorder.kept_in == [tmp_path / "index.partial"]


def test_a_source_that_may_not_be_read_is_named(
    bundle: Bundle, passages_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> str:
        raise system(errno.EACCES, path)

    monkeypatch.setattr(winnow.content_node.indexing.builder, "sha256", refuse)
    with pytest.raises(ArtefactError, match=f"^cannot read {passages_file}: Permission denied$"):
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
            bundle,
            Recorder(),
        )
    assert tree(tmp_path) == set()


def test_a_staging_database_that_is_damaged_is_named_and_left(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    partial = tmp_path / "index.partial"
    partial.mkdir()
    (partial / "staging.sqlite").write_bytes(b"no database at all" * 1000)
    with pytest.raises(
        ArtefactError, match=r"not a database: remove .*index\.partial to start again"
    ):
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert (partial / "staging.sqlite").exists()


def test_a_staging_database_that_another_program_holds_is_named(
    bundle: Bundle,
    passages_file: Path,
    tmp_path: Path,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **_: connect(path, timeout=0))
    staging = tmp_path / "index.partial" / "staging.sqlite"
    staging.parent.mkdir()
    Staging(staging).close()
    holder = connect(staging)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ArtefactError, match="is locked: end the program that has it open"):
        build_index(
            BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
            bundle,
            recorder,
        )
    holder.close()
