"""The contract of a storage, in a directory and at fsspec URLs alike."""

import errno
import io
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from small_disks import limited_files
from tenacious import LONG

from winnow.caller import message_of
from winnow.errors import ArtefactError, UnavailableError
from winnow.storage import Storage, open_storage, remote
from winnow.storage.local import LocalStorage
from winnow.storage.remote import RemoteStorage
from winnow.storage.stalling import StoreStalledError, WatchedRequest


@pytest.fixture(params=["directory", "file url", "object store", "fsspec disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    makers: dict[str, Callable[[], Storage]] = {
        "directory": lambda: open_storage(tmp_path / "storage", "things"),
        "file url": lambda: open_storage(f"file://{tmp_path}/storage", "things"),
        "object store": lambda: open_storage(f"memory://{uuid4().hex}/storage", "things"),
        "fsspec disk": lambda: RemoteStorage(f"file://{tmp_path}/storage", "things"),
    }
    return makers[request.param]()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "model").write_bytes(b"x" * 50_000)
    (folder / "manifest").write_bytes(b"{}")
    return folder


def test_a_storage_that_nobody_wrote_to_is_empty(storage: Storage, tmp_path: Path) -> None:
    assert storage.read("a/b") is None
    assert storage.sizes() == {}
    assert storage.sizes("a") == {}
    assert storage.folders() == []
    assert storage.directory("a") is None
    with pytest.raises(FileNotFoundError):
        storage.download("a/b", tmp_path / "target")


def test_what_is_written_is_read_and_listed(storage: Storage) -> None:
    storage.write("top", b"")
    storage.write("a/one", b"1")
    storage.write("a/two", b"22")
    storage.write("a/two", b"333")
    assert storage.read("a/two") == b"333"
    assert storage.sizes("a") == {"one": 1, "two": 3}
    assert storage.sizes() == {"top": 0}
    assert storage.folders() == ["a"]
    assert storage.folders("a") == []


def test_a_removed_file_is_gone_and_may_be_removed_again(storage: Storage) -> None:
    storage.write("a/one", b"1")
    storage.write("a/two", b"22")
    for _ in range(2):
        storage.remove("a/one")
        assert storage.sizes("a") == {"two": 2}
    storage.remove("b/none")


def test_hidden_files_are_not_listed(storage: Storage) -> None:
    storage.write(".hidden", b"")
    storage.write(".folder/file", b"")
    assert storage.sizes() == {}
    assert storage.folders() == []


def test_files_are_copied_both_ways_and_every_byte_is_reported(
    storage: Storage, source: Path, tmp_path: Path
) -> None:
    sent, received = list[int](), list[int]()
    storage.upload("a/model", source / "model", sent.append)
    storage.download("a/model", tmp_path / "target", received.append)
    assert (tmp_path / "target").read_bytes() == (source / "model").read_bytes()
    assert storage.sizes("a") == {"model": 50_000}
    if isinstance(storage, LocalStorage):  # some file systems of fsspec report nothing
        assert sum(sent) == sum(received) == 50_000


def test_a_full_disk_of_this_machine_is_no_fault_of_the_storage(
    storage: Storage, source: Path, tmp_path: Path
) -> None:
    storage.upload("model", source / "model")
    with limited_files(40_000), pytest.raises(OSError, match="target") as raised:
        storage.download("model", tmp_path / "target")
    assert raised.value.errno == errno.EFBIG


def test_a_full_storage_keeps_what_it_had(source: Path, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "storage", "things")
    storage.write("model", b"old")
    with (
        limited_files(100),
        pytest.raises(UnavailableError, match=r"cannot use .* for things: File "),
    ):
        storage.upload("model", source / "model")
    assert storage.read("model") == b"old"
    assert [each.name for each in (tmp_path / "storage").iterdir()] == ["model"]


def test_a_folder_is_published_with_its_last_file_last(storage: Storage, source: Path) -> None:
    seen = list[Path | None]()
    with storage.locked():
        storage.publish("head/1", source, ("model", "manifest"), seen.append)
    assert storage.sizes("head/1") == {"model": 50_000, "manifest": 2}
    assert len(seen) == 1
    directory = storage.directory("head/1")
    assert (directory is None) == (seen[0] is None)


def test_a_folder_that_is_refused_is_not_published(storage: Storage, source: Path) -> None:
    def refuse(_: Path | None) -> None:
        raise ArtefactError("bad")

    with storage.locked(), pytest.raises(ArtefactError, match="bad"):
        storage.publish("head/1", source, ("model", "manifest"), refuse)
    assert storage.read("head/1/manifest") is None


def test_writers_of_a_directory_wait_for_one_another(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "storage", "things")
    order = list[str]()

    def write() -> None:
        with storage.locked():
            order.append("second")

    with storage.locked():
        thread = threading.Thread(target=write)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_only_abandoned_files_of_our_own_are_removed(source: Path, tmp_path: Path) -> None:
    storage, root = open_storage(tmp_path / "storage", "things"), tmp_path / "storage"
    root.mkdir()
    for name, age in ((".winnow-old", 90_000), (".winnow-new", 0), (".gitignore", 90_000)):
        (root / name).write_bytes(b"")
        os.utime(root / name, (time.time() - age,) * 2)
    storage.upload("model", source / "model")
    assert {each.name for each in root.iterdir()} == {".winnow-new", ".gitignore", "model"}


def test_others_may_read_what_is_written_to_a_directory(source: Path, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "storage", "things")
    storage.write("a", b"")
    storage.upload("b", source / "model")
    for name in ("a", "b"):
        assert (tmp_path / "storage" / name).stat().st_mode & 0o004


@pytest.mark.parametrize("reason", ["No such file", "Not a directory"])
def test_a_directory_that_must_exist_is_not_taken_for_an_empty_one(
    reason: str, tmp_path: Path
) -> None:
    """A disk that is not mounted must not look like heads that were removed."""
    if reason == "Not a directory":
        (tmp_path / "nowhere").write_bytes(b"")
    storage = open_storage(tmp_path / "nowhere", "things", must_exist=True)
    attempts: list[Callable[[], object]] = [
        storage.sizes,
        storage.folders,
        lambda: storage.read("a"),
        lambda: storage.directory("a"),
    ]
    for attempt in attempts:
        with pytest.raises(UnavailableError, match=f"nowhere/ for things: {reason}") as raised:
            attempt()
        assert message_of(raised.value) == "the store of things cannot be used"


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_neither_read_nor_waited_for(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "a")
    with pytest.raises(ArtefactError, match=r"cannot read .*/a: it is "):
        open_storage(tmp_path, "things").read("a")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "nonsense://me:secret@host/x",
            "cannot use nonsense://host/x for things: Protocol not known",
        ),
        ("s3://bucket/x", "cannot use s3://bucket/x for things: Install s3fs"),
    ],
)
def test_a_url_that_cannot_be_used_is_named_without_its_password(
    url: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    with pytest.raises(UnavailableError, match=message) as raised:
        open_storage(url, "things")
    assert "secret" not in str(raised.value)


def test_any_error_of_a_file_system_is_an_unavailable_storage(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(f"memory://{uuid4().hex}", "things")

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no route")

    system = fsspec.filesystem("memory")
    for name in ("cat_file", "ls", "pipe_file", "put_file", "get_file"):
        monkeypatch.setattr(system, name, fails)
    attempts: list[Callable[[], object]] = [
        storage.sizes,
        storage.folders,
        lambda: storage.read("a"),
        lambda: storage.write("a", b""),
        lambda: storage.upload("a", source / "model"),
        lambda: storage.download("a", tmp_path / "a"),
    ]
    for attempt in attempts:
        with pytest.raises(UnavailableError, match="for things: no route"):
            attempt()


def test_a_file_is_not_taken_for_an_empty_storage(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.write_text("no folder")
    storage = LocalStorage(root, "snapshots")
    for look in (storage.sizes, partial(storage.read, "snapshot.json")):
        with pytest.raises(UnavailableError, match=r"cannot use .*file.* for snapshots"):
            look()


def test_a_file_of_the_storage_that_cannot_be_read_is_no_fault_of_the_target(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreadable(io.BytesIO):
        def read(self, _size: int | None = None) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    storage = LocalStorage(source, "bundles")
    name = min(storage.sizes())
    monkeypatch.setattr(Path, "open", lambda *_: Unreadable())
    with pytest.raises(UnavailableError, match=r"cannot use .* for bundles: Input/output error"):
        storage.download(name, tmp_path / "target")


def test_a_request_is_given_up_once_it_makes_no_progress() -> None:
    """A slow copy is none that hangs, however long it takes."""
    never, done, copied = threading.Event(), threading.Event(), itertools.count()

    def progress() -> int:
        if (blocks := next(copied)) == 3:
            done.set()
        return blocks

    assert WatchedRequest(done.wait, 0.01).result(progress)
    with pytest.raises(StoreStalledError, match="no reply and no data for 0"):
        WatchedRequest(never.wait, 0.01).result()
    never.set()


def test_a_store_that_hangs_is_unavailable_and_its_late_reply_changes_no_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(f"memory://{uuid4().hex}", "things")
    storage.upload("a", source / "model")
    replies, written = threading.Event(), threading.Event()
    get = fsspec.filesystem("memory").get_file

    def hang(path: str, target: str, **_: object) -> None:
        replies.wait()
        Path(target).write_bytes(b"late")
        written.set()

    monkeypatch.setattr(remote, "STALLED_SECONDS", 0.01)
    monkeypatch.setattr(fsspec.filesystem("memory"), "get_file", hang)
    with pytest.raises(UnavailableError, match="for things: no reply and no data"):
        storage.download("a", tmp_path / "a")
    monkeypatch.setattr(remote, "STALLED_SECONDS", 60.0)
    monkeypatch.setattr(fsspec.filesystem("memory"), "get_file", get)
    storage.download("a", tmp_path / "a")
    replies.set()
    assert written.wait(60)
    assert (tmp_path / "a").read_bytes() == (source / "model").read_bytes()
