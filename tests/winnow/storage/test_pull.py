"""A pull copies what is missing, verifies every byte, and leaves nothing else."""

import hashlib
from pathlib import Path

import pytest

from winnow.errors import ArtefactError
from winnow.storage import Storage, open_storage
from winnow.storage.pull import NoProgress, PulledFile, PullSource, pull_files, start_copying

CONTENT = {"a": b"first", "folder/b": b"second"}
FILES = {
    name: PulledFile(f"files/{name[-1]}", hashlib.sha256(data).hexdigest(), len(data))
    for name, data in CONTENT.items()
}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    made = open_storage(tmp_path / "storage", "things")
    for name, file in FILES.items():
        made.write(file.path, CONTENT[name])
    return made


def pull(storage: Storage, target: Path) -> None:
    target.mkdir(exist_ok=True)
    source = PullSource(
        storage=storage, source="it", advice_if_missing="add it", advice_if_damaged="mend it"
    )
    pull_files(source, FILES, target, NoProgress())


def test_good_files_stay_and_others_are_replaced_or_removed(
    storage: Storage, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    (target / "old").mkdir(parents=True)
    (target / "old" / "x").write_bytes(b"of something else")
    (target / "a").write_bytes(b"cut")
    pull(storage, target)
    inodes = {name: (target / name).stat().st_ino for name in FILES}
    pull(storage, target)
    assert {name: (target / name).stat().st_ino for name in FILES} == inodes
    assert {name: (target / name).read_bytes() for name in FILES} == CONTENT
    assert {each.name for each in target.iterdir()} == {"a", "folder"}


def test_a_damaged_file_is_named_and_not_kept(storage: Storage, tmp_path: Path) -> None:
    storage.write("files/b", b"SECOND")
    with pytest.raises(ArtefactError, match=r"folder/b of it is damaged \(files/b\): mend it"):
        pull(storage, tmp_path / "target")
    assert not (tmp_path / "target" / "folder" / "b").exists()


def test_a_missing_file_is_named(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "storage" / "files" / "a").unlink()
    with pytest.raises(ArtefactError, match=r"a of it is missing \(files/a\): add it"):
        pull(storage, tmp_path / "target")


class RecordedProgress(NoProgress):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.started, self.steps = list[tuple[str, int | None, int]](), list[int]()

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self.started.append((stage, total, done))

    def advance(self, steps: int) -> None:
        self.steps.append(steps)


def test_progress_is_reported_in_whole_megabytes() -> None:
    progress = RecordedProgress()
    advance = start_copying(progress, "copying", [5_000_000, 7_200_000], [5_000_000])
    for count in (600_000, 600_000, 3_000_000, 799_999, 1):
        advance(count)
    assert progress.started == [("copying", 12, 7)]
    assert progress.steps == [1, 3, 1]
