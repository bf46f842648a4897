"""A bundle is published at a place, and pulled from it whole or not at all; near and far alike."""

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from small_disks import limited_files
from typer.testing import CliRunner

from winnow.bundle import Bundle, load_bundle
from winnow.bundle.publishing import pull_bundle, push_bundle
from winnow.cli.bundle import app
from winnow.errors import ArtefactError, NotFoundError, UnavailableError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.storage.partial import open_partial

FILES = {"encoder.onnx": b"an encoder", "reader.onnx": b"a reader", "tokenizer.json": b"{}"}


@pytest.fixture
def made(bundle: Bundle, tmp_path: Path) -> Path:
    """A bundle with the default one's manifest, whose files are small."""
    return small_bundle(tmp_path / "made", bundle)


def small_bundle(
    directory: Path, bundle: Bundle, version: str = "1", reader: bytes = FILES["reader.onnx"]
) -> Path:
    directory.mkdir()
    content = bundle.manifest.model_dump(mode="json") | {"version": version, "files": {}}
    content["encoder"] |= {"question": "encoder.onnx", "passage": "encoder.onnx"}
    content["reader"] |= {"file": "reader.onnx", "apart": None}
    content |= {"tokenizer": "tokenizer.json", "late_interaction": None}
    for name, data in (FILES | {"reader.onnx": reader}).items():
        (directory / name).write_bytes(data)
        content["files"][name] = entry(data)
    (directory / "bundle.json").write_text(to_checksummed_json(content))
    return directory


def entry(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


@pytest.fixture(params=["directory", "url"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "directory":
        yield f"{tmp_path}/published/mini"
        return
    yield (root := f"memory://{uuid.uuid4().hex}/mini")
    system = fsspec.filesystem("memory")
    if system.exists(root):
        system.rm(root, recursive=True)


def test_a_pulled_bundle_is_the_one_that_was_pushed(made: Path, place: str, tmp_path: Path) -> None:
    push_bundle(made, place)
    pulled = pull_bundle(place, tmp_path / "here")
    assert pulled.copied
    assert pulled.bundle.manifest == load_bundle(made).manifest
    assert [each.name for each in sorted((tmp_path / "here").iterdir())] == [
        "bundle.json",
        *FILES,
    ]
    assert not (tmp_path / "here.partial").exists()


def test_a_bundle_that_is_there_stays_and_is_compared(
    made: Path, bundle: Bundle, place: str, tmp_path: Path
) -> None:
    push_bundle(made, place)
    pull_bundle(place, tmp_path / "here")
    assert not pull_bundle(place, tmp_path / "here").copied
    push_bundle(small_bundle(tmp_path / "other", bundle, "2"), f"{place}-2")
    with pytest.raises(ArtefactError, match="holds another bundle than"):
        pull_bundle(f"{place}-2", tmp_path / "here")


def test_a_bundle_that_is_there_serves_while_its_place_is_away(made: Path, tmp_path: Path) -> None:
    pulled = pull_bundle("nosuchscheme://models/mini", made)
    assert not pulled.copied
    assert "cannot use nosuchscheme://models/mini" in pulled.unreachable
    assert "there is no bundle at" in pull_bundle(f"{tmp_path}/nothing", made).unreachable


def test_a_bundle_that_is_there_and_damaged_is_refused(
    made: Path, place: str, tmp_path: Path
) -> None:
    push_bundle(made, place)
    pull_bundle(place, tmp_path / "here")
    (tmp_path / "here" / "reader.onnx").write_bytes(b"A reader")
    with pytest.raises(ArtefactError, match=r"reader\.onnx is damaged"):
        pull_bundle(place, tmp_path / "here")


def test_a_damaged_file_at_the_place_is_named_and_nothing_appears(
    made: Path, place: str, tmp_path: Path
) -> None:
    push_bundle(made, place)
    system, root = fsspec.url_to_fs(place)
    system.pipe_file(f"{root}/reader.onnx", b"A reader")
    with pytest.raises(ArtefactError, match=r"reader\.onnx of the bundle at .*mini is damaged"):
        pull_bundle(place, tmp_path / "here")
    system.rm_file(f"{root}/reader.onnx")
    with pytest.raises(ArtefactError, match=r"reader\.onnx of the bundle at .*mini is missing"):
        pull_bundle(place, tmp_path / "here")
    assert not (tmp_path / "here").exists()
    # and once it is mended, the same command goes on
    push_bundle(made, place)
    assert pull_bundle(place, tmp_path / "here").copied


def test_what_an_interrupted_pull_of_another_bundle_left_is_removed(
    made: Path, place: str, tmp_path: Path
) -> None:
    push_bundle(made, place)
    with open_partial(tmp_path / "here") as partial:
        (partial.content / "old.onnx").write_bytes(b"of another bundle")
        (partial.content / "reader.onnx").write_bytes(b"cut o")
    assert pull_bundle(place, tmp_path / "here").copied
    assert not (tmp_path / "here" / "old.onnx").exists()


def test_a_published_bundle_never_changes(
    made: Path, bundle: Bundle, place: str, tmp_path: Path
) -> None:
    push_bundle(made, place)
    push_bundle(made, place)  # again, as after an interruption
    with pytest.raises(
        ArtefactError, match=r"mini.* already holds another bundle: push this one to another URL"
    ):
        push_bundle(small_bundle(tmp_path / "other", bundle, "2"), place)


def test_a_place_with_other_files_is_not_written_to(made: Path, place: str) -> None:
    system, root = fsspec.url_to_fs(place)
    system.makedirs(root)
    system.pipe_file(f"{root}/index.json", b"{}")
    with pytest.raises(ArtefactError, match=r"mini already holds index\.json"):
        push_bundle(made, place)
    assert [each.rpartition("/")[2] for each in system.ls(root, detail=False)] == ["index.json"]


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_place_is_not_taken_for_the_directory_of_the_command(
    made: Path, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["push", str(made), empty], ["pull", empty, "here"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert "not an empty text" in result.output
    assert [each.name for each in tmp_path.iterdir()] == ["made"]


def test_a_push_to_a_full_disk_goes_on_once_there_is_room(made: Path, tmp_path: Path) -> None:
    place = f"{tmp_path}/published/mini"
    with limited_files(100), pytest.raises(UnavailableError, match="File too large"):
        push_bundle(made, place)
    with pytest.raises(NotFoundError):  # and until then there is no bundle, rather than half a one
        pull_bundle(place, tmp_path / "here")
    push_bundle(made, place)
    assert pull_bundle(place, tmp_path / "here").copied


def test_a_second_push_that_fails_leaves_what_was_published(made: Path, tmp_path: Path) -> None:
    place = f"{tmp_path}/published/mini"
    push_bundle(made, place)
    with limited_files(3), pytest.raises(UnavailableError):
        push_bundle(made, place)
    assert pull_bundle(place, tmp_path / "here").copied
    assert {each.name for each in Path(place).iterdir()} == {"bundle.json", *FILES}


def test_a_pull_to_a_full_disk_says_so_of_this_machine_and_goes_on(
    bundle: Bundle, place: str, tmp_path: Path
) -> None:
    push_bundle(small_bundle(tmp_path / "large", bundle, reader=b"a reader" * 10_000), place)
    with (
        limited_files(40_000),
        pytest.raises(ArtefactError, match=r"cannot write .*/reader\.onnx: "),
    ):
        pull_bundle(place, tmp_path / "here")
    assert pull_bundle(place, tmp_path / "here").copied


def test_a_place_without_a_bundle_is_named(tmp_path: Path, place: str) -> None:
    with pytest.raises(NotFoundError, match=r"there is no bundle at .*mini"):
        pull_bundle(place, tmp_path / "here")
    with pytest.raises(UnavailableError, match="nosuchscheme://host/mini") as told:
        pull_bundle("nosuchscheme://me:secret@host/mini", tmp_path / "here")
    assert "secret" not in str(told.value)


def test_the_commands_say_what_they_did(made: Path, place: str, tmp_path: Path) -> None:
    runner = CliRunner()
    assert f": bundle {load_bundle(made).manifest.name} 1, " in said(runner, "push", made, place)
    first = said(runner, "pull", place, tmp_path / "here")
    assert first.startswith(f"{tmp_path}/here: bundle ")
    assert said(runner, "pull", place, tmp_path / "here").endswith("is there already\n")


def said(runner: CliRunner, *words: object) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output
