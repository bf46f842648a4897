"""A write goes to one index and one tenant, also if a copy has replaced the index meanwhile."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.domain.quota import Quotas, TenantQuota
from winnow.errors import (
    IndexIsCopyError,
    InvalidRequestError,
    NotWritableError,
    OverloadedError,
)
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.fed_index import (
    FedIndex,
    TenantFeed,
    with_one_index,
    write_to_current,
)
from winnow.stateless.tenants.quotas import TenantQuotas
from winnow.stateless.tenants.tenancy import Tenancy
from winnow.v1 import feed_pb2

CORE = cast("FeedCore", None)
REQUEST = feed_pb2.DeleteRequest(index="docs")


class SwitchedAlias:
    """An alias that stands for `old`, which is a copy now, until a front has waited long enough."""

    def __init__(self, switched_after: float) -> None:
        self.clock = ManualClock()
        self._switched_at = self.clock() + switched_after
        self.tried: list[str] = []

    def choose(self, name: str, tenancy: Tenancy | None = None) -> FedIndex:
        assert name == "docs"
        current = "old" if self.clock() < self._switched_at else "new"
        return FedIndex(CORE, name=current, tenancy=tenancy)

    async def write(self, fed: TenantFeed) -> str:
        self.tried.append(fed.name)
        if fed.name == "old":
            raise IndexIsCopyError("the index is a copy of new")
        return "stored"

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)


async def test_a_write_is_repeated_until_the_front_knows_of_the_switch() -> None:
    alias = SwitchedAlias(1.0)
    deadline = Deadline.after(30.0, alias.clock)
    fed, result = await write_to_current(alias.choose, REQUEST, deadline, alias.write, alias.sleep)
    assert (fed.name, result, alias.tried) == ("new", "stored", ["old", "old", "old", "new"])


async def test_a_repeated_write_of_a_tenant_counts_once() -> None:
    """Otherwise it would be refused because of the quota of the tenant."""
    alias, request = SwitchedAlias(1.0), feed_pb2.DeleteRequest(index="docs", tenant="acme")
    quotas = Quotas(default=TenantQuota(writes_per_second=0.01))
    limits = TenantQuotas(lambda: quotas, clock=alias.clock)
    cluster = SimpleNamespace(has_tenants=True, index_id="index")
    choose = partial(alias.choose, tenancy=Tenancy(lambda: cast("Cluster", cluster), limits))

    async def write(fed: TenantFeed) -> str:
        fed.admit_writes(1)
        return await alias.write(fed)

    deadline = Deadline.after(30.0, alias.clock)
    _, result = await write_to_current(choose, request, deadline, write, alias.sleep)
    assert result == "stored"
    with pytest.raises(OverloadedError, match=r"acme exceeds its quota of 0\.01 writes"):
        choose("docs").of_tenant("acme").admit_writes(1)


async def test_a_write_fails_before_the_deadline_if_the_front_does_not_learn_of_the_switch() -> (
    None
):
    alias = SwitchedAlias(1_000.0)
    deadline = Deadline.after(5.0, alias.clock)
    with pytest.raises(IndexIsCopyError):
        await write_to_current(alias.choose, REQUEST, deadline, alias.write, alias.sleep)
    assert deadline.left() > 0


async def test_a_write_to_a_copy_by_its_own_name_is_refused_within_seconds() -> None:
    """Its caller would send it again and again if it failed as if the index were unavailable."""
    clock = ManualClock()

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    async def write(_fed: TenantFeed) -> None:
        raise IndexIsCopyError("the index is a copy")

    deadline = Deadline.after(60.0, clock)
    with pytest.raises(NotWritableError, match=r"new is a copy of old, .*: write to old, or"):
        await write_to_current(
            lambda _: FedIndex(CORE, name="new", source="old"), REQUEST, deadline, write, sleep
        )
    assert deadline.left() > 50.0


@pytest.mark.parametrize(
    ("first", "later", "is_refused"),
    [("", "acme", False), ("acme", "", False), ("", "bolt", True), ("acme", "bolt", True)],
)
async def test_the_messages_of_a_stream_may_name_the_tenant_of_the_key(
    first: str, later: str, is_refused: bool
) -> None:
    async def others() -> AsyncIterator[feed_pb2.DeleteRequest]:
        yield feed_pb2.DeleteRequest(tenant=later)

    messages = with_one_index(feed_pb2.DeleteRequest(tenant=first), others(), "acme")
    context = (
        pytest.raises(InvalidRequestError, match="one tenant only")
        if is_refused
        else contextlib.nullcontext()
    )
    with context:
        assert [each.tenant async for each in messages] == [first, later]
