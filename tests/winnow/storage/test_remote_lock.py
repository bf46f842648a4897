"""The lock of a file at a URL, which an object beside the file holds."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import uuid4

import fsspec
import pytest

from winnow.catalog import CatalogFile
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import UnavailableError
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

    def lock() -> RemoteLock:
        return RemoteLock(system, path, clock=lambda: waiting.now, sleep=waiting.sleep)

    first, second, third = lock(), lock(), lock()
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
