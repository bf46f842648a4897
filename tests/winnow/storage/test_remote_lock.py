"""The lock of a file: at a URL, an object beside the file holds it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

from winnow.catalog import CatalogFile
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import UnavailableError
from winnow.storage import local, open_storage
from winnow.storage.remote_lock import RemoteLock


class Waiting:
    """A clock that runs only while a writer waits, and what happens meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happens: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.happens()


def test_a_writer_waits_for_the_holder_and_removes_the_lock_of_a_dead_one() -> None:
    system, path = fsspec.filesystem("memory"), f"/{uuid4().hex}/indexes.json.lock"
    waiting = Waiting()
    first, second, third = (_lock(system, path, waiting) for _ in range(3))
    first.acquire()
    waiting.happens = first.release
    second.acquire()
    assert waiting.now < 1
    waiting.happens = lambda: None  # the second one was killed
    third.acquire()
    assert waiting.now > 15
    third.check()
    with pytest.raises(UnavailableError, match="another writer took the lock"):
        second.check()
    second.release()
    third.check()
    third.release()
    assert not system.exists(path)


class _Store:
    """A store whose requests to create an object fail as `errors` says, one after the other."""

    def __init__(self, *errors: OSError | KeyboardInterrupt, is_created: bool = False) -> None:
        """`is_created`: whether a request creates the object all the same."""
        self.system, self._errors = fsspec.filesystem("memory"), list(errors)
        self._is_created = is_created

    def pipe_file(self, path: str, value: bytes, mode: str) -> None:
        error = self._errors.pop(0) if self._errors else None
        if error is None or self._is_created:
            self.system.pipe_file(path, value, mode=mode)
        if error is not None:
            raise error

    def makedirs(self, path: str, exist_ok: bool) -> None:
        """Creates nothing: object stores have no folders."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)


def _lock(store: Any, path: str, waiting: Waiting) -> RemoteLock:
    return RemoteLock(store, path, clock=lambda: waiting.now, sleep=waiting.sleep)


def test_a_lock_in_a_bucket_that_does_not_exist_fails_instead_of_waiting() -> None:
    store = _Store(*(FileNotFoundError("no such bucket") for _ in range(10)))
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        _lock(store, f"/{uuid4().hex}/indexes.json.lock", Waiting()).acquire()


def test_a_writer_has_the_lock_if_only_the_reply_to_its_request_was_lost() -> None:
    """A client library repeats the request, and gets the error that the object exists."""
    store, waiting = _Store(FileExistsError("it exists"), is_created=True), Waiting()
    lock = _lock(store, f"/{uuid4().hex}/indexes.json.lock", waiting)
    lock.acquire()
    lock.check()
    assert not waiting.now


def test_a_writer_waits_also_if_the_store_has_another_error_for_an_object_that_exists() -> None:
    waiting, path = Waiting(), f"/{uuid4().hex}/indexes.json.lock"
    first = _lock(_Store(), path, waiting)
    first.acquire()
    waiting.happens = first.release
    store = _Store(OSError(22, "at least one of the preconditions did not hold"))
    second = _lock(store, path, waiting)
    second.acquire()
    second.check()


def test_an_interrupted_writer_leaves_no_lock_behind() -> None:
    store = _Store(KeyboardInterrupt(), is_created=True)
    path = f"/{uuid4().hex}/indexes.json.lock"
    with pytest.raises(KeyboardInterrupt):
        _lock(store, path, Waiting()).acquire()
    assert not store.system.exists(path)


def test_a_local_file_whose_lock_a_stopped_process_holds_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends no thread that waits for a lock."""
    monkeypatch.setattr(local, "_LOCK_SECONDS", 0.0)
    storage = open_storage(tmp_path, "catalogs")
    with storage.lock_file("indexes.json"):
        with pytest.raises(UnavailableError, match=r"held .*\.lock for 0 s, so indexes\.json is"):
            storage.lock_file("indexes.json").__enter__()
        assert not (tmp_path / "indexes.json").exists()
    with storage.lock_file("indexes.json"):
        pass


def test_two_changes_of_a_catalog_at_a_url_at_once_are_both_kept() -> None:
    """The second one waits until the first one has been written."""
    url = f"memory://{uuid4().hex}/indexes.json"
    one, other = (CatalogIndex(index_id=each, shards=1) for each in ("a1", "b2"))
    with ThreadPoolExecutor(1) as threads:
        later: list[Future[Catalog]] = []

        def change(before: Catalog | None) -> Catalog:
            later.append(
                threads.submit(
                    CatalogFile(url).change,
                    lambda stored: (stored or Catalog()).with_index("b", other),
                )
            )
            with pytest.raises(TimeoutError):
                later[0].result(0.2)
            return (before or Catalog()).with_index("a", one)

        CatalogFile(url).change(change)
        assert later[0].result(60).indexes.keys() == {"a", "b"}
