"""Who is there: nodes that come, go, hang and come back."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest
from tenacious import happens

from stateless.registry import Node, Registry, RegistrySettings
from winnow.errors import DeadlineExceededError, NotLoadedError, UnavailableError, WinnowError
from winnow.fakes import FakeSearcher, reading

SETTINGS = RegistrySettings(resolve_every=0.001, poll_every=0.001, poll_timeout=1.0)
LATE = DeadlineExceededError("late")


class Target:
    """A target whose addresses a test changes."""

    target = "dns:///nodes:1"

    def __init__(self, addresses: str) -> None:
        self.now = addresses
        self.fails = False

    async def addresses(self) -> frozenset[str]:
        if self.fails:
            raise UnavailableError("no name server")
        return frozenset(self.now)


class Watched:
    """A registry over fakes, and what it told."""

    def __init__(self, addresses: str) -> None:
        self.fakes = {name: FakeSearcher([reading(name)]) for name in "abc"}
        self.target = Target(addresses)
        self.closed: list[str] = []
        self.told: list[set[str]] = []
        self.registry = Registry(
            [self.target], self._open, self._changed, SETTINGS, random.Random(1)
        )

    def _open(self, address: str) -> Node:
        async def close() -> None:
            self.closed.append(address)

        return Node(address, self.fakes[address], close)

    def _changed(self) -> None:
        self.told.append(set(self.registry.present()))

    async def sees(self, names: str) -> None:
        await happens(lambda: bool(self.told) and self.told[-1] == set(names))

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator["Watched"]:
        task = asyncio.create_task(self.registry.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_nodes_that_reply_are_present() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        assert watched.registry.present()["a"].passages == 1
        assert watched.registry.searcher("a") is watched.fakes["a"]
    assert sorted(watched.closed) == ["a", "b"]


async def test_a_node_that_refuses_is_gone_at_once_and_comes_back() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.fakes["a"].fails = UnavailableError("a: connection refused")
        await watched.sees("b")
        node = watched.registry.nodes["a"]
        assert node.info is not None  # what it was is not forgotten
        assert str(node.error) == "a: connection refused"
        watched.fakes["a"].fails = None
        await watched.sees("ab")
        assert not watched.closed


async def test_a_node_that_dns_forgot_stays_while_it_answers() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.target.now = "b"
        calls = watched.fakes["a"].calls
        await happens(lambda: watched.fakes["a"].calls > calls + 3)
        assert set(watched.registry.present()) == {"a", "b"}
        watched.fakes["a"].fails = UnavailableError("gone")
        await happens(lambda: watched.closed == ["a"])
        assert watched.told[-1] == {"b"}
        with pytest.raises(UnavailableError, match="a: it is not there"):
            watched.registry.searcher("a")


async def test_nodes_that_dns_finds_later_join() -> None:
    async with Watched("a").looking() as watched:
        await watched.sees("a")
        watched.target.now = "abc"
        await watched.sees("abc")


async def test_when_names_cannot_be_looked_up_nobody_is_lost() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.target.fails = True
        watched.fakes["a"].fails = UnavailableError("gone")
        await watched.sees("b")
        watched.fakes["a"].fails = None
        await watched.sees("ab")


@pytest.mark.parametrize(
    ("errors", "there"),
    [
        ([], True),
        ([LATE], True),
        ([LATE, LATE], False),
        ([WinnowError("?")], True),
        ([UnavailableError("refused")], False),
        ([NotLoadedError("damaged")], False),
    ],
)
async def test_silence_is_forgiven_once(errors: list[WinnowError], there: bool) -> None:
    fake = FakeSearcher([reading("a")])
    node = Node("a", fake, fake.go_on.wait)  # type: ignore[arg-type]
    assert not node.present(2)
    node.heard(await fake.info(None))  # type: ignore[arg-type]
    for error in errors:
        node.missed(error)
    assert node.present(2) is there
