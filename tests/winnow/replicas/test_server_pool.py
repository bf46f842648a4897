"""Servers behind names that are looked up."""

import asyncio
from collections.abc import Collection

from tenacious import Change, turn

from winnow.errors import UnavailableError
from winnow.replicas.server_pool import follow_targets


class Listed:
    """A target whose addresses a test changes; none means that it cannot be looked up."""

    def __init__(self, target: str, *addresses: str) -> None:
        self.target, self.now = target, frozenset(addresses)
        self.looked = 0
        self.change = Change()

    async def addresses(self) -> frozenset[str]:
        self.looked += 1
        self.change.tell()
        await turn()
        if not self.now:
            raise UnavailableError("no such host")
        return self.now


class Told:
    """The addresses that were handed on."""

    def __init__(self) -> None:
        self.addresses: list[Collection[str]] = []
        self.change = Change()

    def update(self, addresses: Collection[str]) -> None:
        self.addresses.append(addresses)
        self.change.tell()


async def test_addresses_are_followed_and_those_of_a_name_that_is_gone_stay() -> None:
    one, other = Listed("dns:///one:1", "a:1", "b:1"), Listed("c:1", "c:1")
    told = Told()
    following = asyncio.create_task(
        follow_targets("server", [one, other], told.update, interval=0.0)
    )
    await told.change.when(lambda: bool(told.addresses))
    assert told.addresses[0] == {"a:1", "b:1", "c:1"}
    one.now = frozenset({"a:1", "d:1"})
    await told.change.when(lambda: told.addresses[-1] == {"a:1", "d:1", "c:1"})
    one.now, looked = frozenset(), one.looked
    await one.change.when(lambda: one.looked > looked + 3)
    assert told.addresses[-1] == {"a:1", "d:1", "c:1"}
    following.cancel()
    await asyncio.wait([following])


async def test_before_any_name_is_known_there_are_no_servers() -> None:
    told = Told()
    following = asyncio.create_task(
        follow_targets("server", [Listed("x")], told.update, interval=0.0)
    )
    await told.change.when(lambda: bool(told.addresses))
    assert told.addresses[0] == frozenset()
    following.cancel()
    await asyncio.wait([following])
