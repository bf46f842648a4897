"""Files that are read again when they change, and when they could not be read."""

import os
from pathlib import Path

import pytest
from unreadable import without_descriptors

from winnow.errors import ArtefactError, WinnowError
from winnow.files.watched import WatchedFiles


class Watched:
    """A file of a word, and what was told of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reads = 0
        self.told: list[str] = []
        path.write_text("old")
        self.files = WatchedFiles([path], self.read, self.failed)

    def read(self) -> str:
        self.reads += 1
        try:
            with self.path.open() as file:
                return file.read()
        except OSError as error:
            raise ArtefactError(f"cannot read it: {error.strerror}") from error

    def failed(self, error: WinnowError) -> None:
        self.told.append(str(error))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "word")


def test_a_file_that_did_not_change_is_read_once(watched: Watched) -> None:
    assert not watched.files.refresh()
    assert (watched.reads, watched.files.version) == (1, 0)


def test_a_changed_file_is_read_again_after_a_read_that_failed(watched: Watched) -> None:
    watched.path.write_text("new")
    with without_descriptors():
        assert not watched.files.refresh()
        assert not watched.files.refresh()
    assert watched.files.content == "old"
    assert len(watched.told) == 1, "the same reason is told once, and not at each look"
    assert watched.files.refresh()
    assert (watched.files.content, watched.files.version) == ("new", 1)


def test_a_reason_is_told_again_once_the_file_was_good_meanwhile(watched: Watched) -> None:
    for _ in range(2):
        watched.path.write_text(f"new {watched.reads}")
        with without_descriptors():
            watched.files.refresh()
        watched.files.refresh()
    assert len(watched.told) == 2


def test_a_change_that_leaves_size_and_time_as_they_were_is_seen(watched: Watched) -> None:
    """Copying tools set the time of the original; the moment of that is kept beside it."""
    before = watched.path.stat()
    watched.path.write_text("new")
    os.utime(watched.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watched.files.refresh()
    assert watched.files.content == "new"


def test_a_change_of_permissions_only_is_no_new_edition(watched: Watched) -> None:
    watched.path.chmod(0o600)
    assert not watched.files.refresh()
    assert (watched.reads, watched.files.version) == (2, 0)


def test_a_file_that_is_gone_is_told_of_and_read_when_it_is_there_again(watched: Watched) -> None:
    watched.path.unlink()
    assert not watched.files.refresh()
    assert not watched.files.refresh()
    assert len(watched.told) == 1
    watched.path.write_text("new")
    assert watched.files.refresh()


def test_the_content_is_current_as_of_the_last_look_that_found_it_so(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.files.watched.time.time", lambda: 1_000.0)
    watched.files.refresh()
    monkeypatch.setattr("winnow.files.watched.time.time", lambda: 1_060.0)
    watched.path.unlink()
    watched.files.refresh()
    assert watched.files.current_at == 1_000.0
    watched.path.write_text("old")
    watched.files.refresh()
    assert watched.files.current_at == 1_060.0
