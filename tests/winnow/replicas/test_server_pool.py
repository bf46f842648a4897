"""Servers behind names that are looked up."""

import asyncio
from collections.abc import Collection

from tenacious import happens

from winnow.errors import UnavailableError
from winnow.replicas.server_pool import follow


class Listed:
    """A target whose addresses a test changes; none means that it cannot be looked up."""

    def __init__(self, target: str, *addresses: str) -> None:
        self.target, self.now = target, frozenset(addresses)
        self.looked = 0

    async def addresses(self) -> frozenset[str]:
        self.looked += 1
        await asyncio.sleep(0)
        if not self.now:
            raise UnavailableError("no such host")
        return self.now


async def test_addresses_are_followed_and_those_of_a_name_that_is_gone_stay() -> None:
    one, other = Listed("dns:///one:1", "a:1", "b:1"), Listed("c:1", "c:1")
    told: list[Collection[str]] = []
    following = asyncio.create_task(follow("server", [one, other], told.append, every=0.0))
    await happens(lambda: bool(told))
    assert told[0] == {"a:1", "b:1", "c:1"}
    one.now = frozenset({"a:1", "d:1"})
    await happens(lambda: told[-1] == {"a:1", "d:1", "c:1"})
    one.now, looked = frozenset(), one.looked
    await happens(lambda: one.looked > looked + 3)
    assert told[-1] == {"a:1", "d:1", "c:1"}
    following.cancel()
    await asyncio.wait([following])


async def test_before_any_name_is_known_there_are_no_servers() -> None:
    told: list[Collection[str]] = []
    following = asyncio.create_task(follow("server", [Listed("x")], told.append, every=0.0))
    await happens(lambda: bool(told))
    assert told[0] == frozenset()
    following.cancel()
    await asyncio.wait([following])
