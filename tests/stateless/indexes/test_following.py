"""A front opens and closes indexes as the catalog says, and switches aliases."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from manual_clock import ManualClock
from tenacious import happens, turn

from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import ArtefactError, NotFoundError, UnavailableError, WinnowError
from winnow.stateless.indexes.catalog_choice import CatalogChoice
from winnow.stateless.indexes.following import CatalogFollower, OpenedIndex
from winnow.stateless.indexes.front_index import FrontIndex

BOTH = (
    Catalog()
    .with_index("old", CatalogIndex(index_id="1", shards=1))
    .with_index("new", CatalogIndex(index_id="2", shards=1))
)


@dataclass
class FakeFront:
    """The indexes of a front, whose catalog and shards a test sets."""

    catalog: Catalog | Exception | None = None
    found: dict[str, asyncio.Event] = field(default_factory=dict)
    """Is set once the shards of an index have been found, by name."""
    failing: set[str] = field(default_factory=set)
    """Indexes that cannot be opened."""
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    """The first and the present name of each renamed index."""
    clock: ManualClock = field(default_factory=ManualClock)
    form_timeout: float = 60.0

    def __post_init__(self) -> None:
        self.choice = CatalogChoice()
        self.lingering = asyncio.Event()
        """Ends the time for which a dropped index finishes its requests."""
        self.follower = CatalogFollower(
            self,
            self._open,
            self.choice,
            form_timeout=self.form_timeout,
            clock=self.clock,
            sleep=self._linger,
        )

    def read(self) -> Catalog | None:
        if isinstance(self.catalog, Exception):
            raise self.catalog
        return self.catalog

    def name_of(self, requested: str) -> str | None:
        return self.choice.choose(requested).name

    async def _open(self, name: str, _index: CatalogIndex) -> OpenedIndex:
        if name in self.failing:
            raise ArtefactError("its bundle is missing")
        self.opened.append(name)

        async def close() -> None:
            self.closed.append(name)

        async def forever() -> None:
            await asyncio.Event().wait()

        async def wait_until_serving() -> None:
            await self.found.setdefault(name, asyncio.Event()).wait()

        counts = SimpleNamespace(answered_questions=1, refused_questions=0)
        parts = SimpleNamespace(answers=counts, admission=counts)
        return OpenedIndex(
            parts=cast("FrontIndex", parts),
            tasks={"polling": forever},
            wait_until_serving=wait_until_serving,
            close=close,
            rename=lambda new: self.renamed.append((name, new)),
        )

    async def _linger(self, _seconds: float) -> None:
        await self.lingering.wait()


@asynccontextmanager
async def group() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks, which are cancelled at the end."""
    before = asyncio.all_tasks()
    async with asyncio.TaskGroup() as tasks:
        yield tasks
        for task in asyncio.all_tasks() - before:
            task.cancel()


def found(*names: str) -> dict[str, asyncio.Event]:
    events = {name: asyncio.Event() for name in names}
    for event in events.values():
        event.set()
    return events


async def test_an_alias_is_switched_once_the_shards_of_its_new_index_are_found() -> None:
    """Until then requests are for the old index, so a switch refuses none."""
    front = FakeFront(BOTH.with_alias("docs", "old"), found("old"), form_timeout=0.0)
    async with group() as tasks:
        await front.follower.update(tasks)
        front.follower._form_timeout = 60.0
        front.catalog = BOTH.with_alias("docs", "new").with_alias("first", "new")
        await front.follower.update(tasks)
        assert front.name_of("docs") == "old"
        with pytest.raises(NotFoundError):
            front.name_of("first")
        front.found["new"].set()
        await happens(lambda: front.name_of("docs") == "new" == front.name_of("first"))
        assert front.name_of("old") == "old"


async def test_requests_by_the_old_name_of_an_index_go_on_at_once() -> None:
    """Its metrics get the new name, so that another index can have the old one."""
    front = FakeFront(BOTH, found("new"), form_timeout=0.0)
    async with group() as tasks:
        await front.follower.update(tasks)
        front.follower._form_timeout = 60.0
        front.catalog = BOTH.with_renamed("old", "old-1")
        await front.follower.update(tasks)
        assert front.name_of("old") == front.name_of("old-1") == "old-1"
        await front.follower.update(tasks)
        assert (front.opened, front.renamed) == (["old", "new"], [("old", "old-1")])


async def test_an_alias_that_waits_delays_no_other_change() -> None:
    third = BOTH.with_index("third", CatalogIndex(index_id="3", shards=1))
    aliased = third.with_alias("docs", "old").with_alias("more", "old")
    front = FakeFront(aliased, found("old", "third"), form_timeout=0.0)
    async with group() as tasks:
        await front.follower.update(tasks)
        front.follower._form_timeout = 60.0
        front.catalog = aliased.with_alias("docs", "new")
        await front.follower.update(tasks)
        front.catalog = front.catalog.with_alias("more", "third")
        await front.follower.update(tasks)
        assert (front.name_of("docs"), front.name_of("more")) == ("old", "third")
        front.catalog = front.catalog.with_alias("docs", "third")
        await front.follower.update(tasks)
        assert front.name_of("docs") == "third"
        front.found["new"].set()  # too late: the alias does not wait for it any more
        await turn()
        assert front.name_of("docs") == "third"


async def test_an_alias_whose_old_index_was_dropped_waits_for_no_shards() -> None:
    aliased = BOTH.with_alias("docs", "old")
    front = FakeFront(aliased, found("old"), form_timeout=0.0)
    async with group() as tasks:
        await front.follower.update(tasks)
        front.follower._form_timeout = 60.0
        front.catalog = aliased.with_alias("docs", "new").with_dropped("old", delete_at=9.0)
        await front.follower.update(tasks)
        assert front.name_of("docs") == "new"


async def test_the_last_version_stays_while_the_catalog_cannot_be_read() -> None:
    front = FakeFront(BOTH, found("old", "new"))
    async with group() as tasks:
        with pytest.raises(UnavailableError, match="has not been read yet"):
            front.name_of("old")
        await front.follower.update(tasks)
        for unreadable in (ArtefactError("damaged"), UnavailableError("no network"), None):
            front.catalog = unreadable
            await front.follower.update(tasks)
            assert front.name_of("new") == "new"


async def test_a_dropped_index_finishes_its_requests_before_it_is_closed() -> None:
    front = FakeFront(BOTH, found("old", "new"))
    async with group() as tasks:
        await front.follower.update(tasks)
        front.catalog = BOTH.with_dropped("old", delete_at=9.0)
        await front.follower.update(tasks)
        with pytest.raises(NotFoundError):
            front.name_of("old")
        assert (front.closed, front.choice.answered_questions) == ([], 2)
        front.lingering.set()
        await happens(lambda: bool(front.closed))
        assert front.closed == ["old"]


async def test_an_index_that_cannot_be_opened_is_tried_again_and_harms_no_other() -> None:
    front = FakeFront(BOTH, found("old", "new"), failing={"old"})
    async with group() as tasks:
        await front.follower.update(tasks)
        assert front.name_of("new") == "new"
        with pytest.raises(UnavailableError, match="index old is not open yet"):
            front.name_of("old")
        front.failing.clear()
        await front.follower.update(tasks)
        with pytest.raises(UnavailableError):
            front.name_of("old")
        front.clock.advance(10.0)
        await front.follower.update(tasks)
        assert front.name_of("old") == "old"


async def test_an_alias_keeps_its_index_until_the_new_one_is_open() -> None:
    """The bundle of the new index may be missing at this front. Writes are refused meanwhile."""
    front = FakeFront(BOTH.with_alias("docs", "old"), found("old", "new"), failing={"new"})
    async with group() as tasks:
        await front.follower.update(tasks)
        assert front.name_of("docs") == "old"
        front.catalog = BOTH.with_alias("docs", "old").with_alias("docs", "new")
        await front.follower.update(tasks)
        assert front.name_of("docs") == "old"
        with pytest.raises(UnavailableError, match="index new is not open yet"):
            front.name_of("new")
        with pytest.raises(UnavailableError, match="index new is not open yet"):
            front.choice.choose_fed("docs")
        front.failing.clear()
        front.clock.advance(10.0)
        await front.follower.update(tasks)
        assert front.name_of("docs") == "new"
        front.catalog = front.catalog.with_dropped("old", delete_at=9.0)
        await front.follower.update(tasks)
        assert front.name_of("docs") == "new"


async def test_a_front_ends_if_a_task_of_an_index_ends() -> None:
    """The index would otherwise keep the nodes that it knew last."""
    front = FakeFront(BOTH, found("old", "new"))
    opening = front._open

    async def open_broken(name: str, index: CatalogIndex) -> OpenedIndex:
        opened = await opening(name, index)

        async def ends() -> None:
            return None

        return OpenedIndex(
            parts=opened.parts,
            tasks={"polling": ends},
            wait_until_serving=opened.wait_until_serving,
            close=opened.close,
        )

    front.follower._open_index = open_broken
    with pytest.raises(ExceptionGroup) as ended:
        await asyncio.wait_for(front.follower.run(), 60)
    assert ended.group_contains(WinnowError, match="the background task of polling ended")
    assert sorted(front.closed) == ["new", "old"]
