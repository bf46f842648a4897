"""Result files: a file that cannot be written is found first, and no empty file is left."""

import os
from pathlib import Path

import pytest

from winnow.cli.drawing import check_picture_path
from winnow.errors import WinnowError
from winnow.files.result_files import convert_write_errors, created_directory, reserve_files


def fail(*paths: Path | None) -> None:
    with reserve_files(*paths):
        raise KeyboardInterrupt


def test_a_new_file_is_there_to_be_written_and_gone_if_the_work_fails(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with reserve_files(path, None):
        path.write_text("done")
    assert path.read_text() == "done"
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "other")
    assert [each.name for each in tmp_path.iterdir()] == ["replies.jsonl"]


def test_a_file_keeps_its_content_until_it_is_written(tmp_path: Path) -> None:
    path, blank = tmp_path / "replies.jsonl", tmp_path / "blank"
    path.write_text("before")
    blank.touch()
    with pytest.raises(KeyboardInterrupt):
        fail(path, blank)
    assert path.read_text() == "before"
    assert blank.exists()


def test_a_written_file_stays_even_if_a_later_step_fails(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"

    def write_and_fail() -> None:
        with reserve_files(path):
            path.write_text("done")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_fail()
    assert path.read_text() == "done"


@pytest.mark.parametrize("name", ["file/below", "directory", "no/such/place"])
def test_a_path_that_cannot_be_written_is_named_and_others_are_not_left(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with pytest.raises(WinnowError, match=f"cannot write .*{name}: .*: choose another path"):
        fail(tmp_path / "first", tmp_path / name)
    assert {each.name for each in tmp_path.iterdir()} == {"file", "directory"}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with reserve_files(tmp_path / "pipe"):
        assert (tmp_path / "pipe").is_fifo()


def test_a_directory_of_results_is_gone_only_if_it_is_new_and_empty(tmp_path: Path) -> None:
    def fail_in(path: Path, *names: str) -> None:
        with created_directory(path) as made:
            for name in names:
                (made / name).touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_in(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(KeyboardInterrupt):
        fail_in(tmp_path / "kept", "outcomes.jsonl")
    assert (tmp_path / "kept").exists()
    (tmp_path / "file").touch()
    with (
        pytest.raises(WinnowError, match="cannot write"),
        created_directory(tmp_path / "file" / "below"),
    ):
        pass


def test_a_disk_that_fills_up_while_writing_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(WinnowError, match="/dev/full: No space left"),
        convert_write_errors(Path("/dev/full")),
    ):
        Path("/dev/full").write_text("too much")


def test_a_picture_needs_a_name_that_says_its_kind(tmp_path: Path) -> None:
    check_picture_path(None)
    check_picture_path(tmp_path / "load.PNG")
    with pytest.raises(WinnowError, match=r"must end in \.png or \.svg"):
        check_picture_path(tmp_path / "load.doc")


def test_a_picture_needs_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(WinnowError, match=r"pip install 'winnow-qa\[plots\]'"):
        check_picture_path(tmp_path / "load.png")
