"""What tenants may store in a shard: counted exactly, over merges and restarts."""

import asyncio
import os
import random
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from live_writes import delete, put
from prometheus_client import CollectorRegistry

from bench.synthetic import build_shard
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.tenant_usage import TenantUsages, usage_in
from winnow.content_node.merging.merge import merge
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.saving import STORE
from winnow.deadline import Deadline
from winnow.domain.quota import StorageQuota, TenantUsage
from winnow.domain.tenant import id_of_whole_tenant, stored_id
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import NotLoadedError, QuotaExceededError

LIMITS = WriteLimits(
    shard=0, shards=1, dimension=8, vocabulary=1_000, max_unmerged=10_000, has_tenants=True
)
TITLE = len("Title")


def opened(directory: Path, base: Path | None = None) -> LiveShard:
    return open_live(
        directory,
        lambda _: open_shard(base or directory, ef=64),
        lambda _: LIMITS,
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A shard with one passage of acme, whose text has four bytes in two characters."""
    first = put(stored_id("acme", "built"), "éé").put
    assert first is not None
    return build_shard(tmp_path, [first], index="an-index", dimension=8, tenants=True)


@pytest.fixture
async def shard(directory: Path) -> AsyncIterator[LiveShard]:
    live = opened(directory)
    yield live
    await live.close()


def of(tenant: str, *writes: Write, **limits: int) -> list[Write]:
    """The writes of a call of a tenant with a quota."""
    quota = StorageQuota(**limits)
    return [replace(_owned(each, tenant), quota=quota) for each in writes]


def _owned(write: Write, tenant: str) -> Write:
    identifier = stored_id(tenant, write.id)
    if write.put is None:
        return replace(write, id=identifier)
    passage = replace(write.put.passage, id=identifier)
    return replace(write, id=identifier, put=replace(write.put, passage=passage))


async def store(shard: LiveShard, writes: list[Write]) -> list[Written]:
    return await shard.write(writes, Deadline.after(60))


async def test_a_call_beyond_the_quota_stores_nothing_and_a_deletion_makes_room(
    shard: LiveShard,
) -> None:
    [first] = await store(shard, of("acme", put("one"), passages=3))
    assert first.usage == TenantUsage(2, TITLE + 4 + TITLE + len("some words"))
    with pytest.raises(QuotaExceededError, match="quota of 3 passages: 2 are stored") as caught:
        await store(shard, of("acme", put("two"), put("three"), passages=3))
    assert caught.value.metadata == {"limit": "passages", "quota": "3", "used": "2"}
    assert (shard.view.passages, shard.sequence) == (2, 1)
    await store(shard, of("acme", put("two"), delete("built"), put("three"), passages=3))
    assert usage_in(shard.view, "acme").passages == 3


async def test_a_replaced_passage_counts_once_and_bytes_are_those_of_utf8(
    shard: LiveShard,
) -> None:
    full = TITLE + 4
    [same] = await store(shard, of("acme", put("built", "éé"), bytes=full))
    assert (same.outcome, same.usage) == (Outcome.UNCHANGED, TenantUsage(1, full))
    [other] = await store(shard, of("acme", put("built", "four"), bytes=full))
    assert other.usage == TenantUsage(1, full)
    with pytest.raises(QuotaExceededError):
        await store(shard, of("acme", put("built", "fours"), bytes=full))


async def test_a_tenant_above_a_lowered_quota_can_delete_and_shorten(shard: LiveShard) -> None:
    await store(shard, of("acme", put("one"), put("two"), put("three")))
    lowered = {"passages": 1, "bytes": 1}
    await store(shard, of("acme", put("one", "short"), **lowered))
    await store(shard, of("acme", delete("two"), **lowered))
    with pytest.raises(QuotaExceededError):
        await store(shard, of("acme", put("four"), **lowered))


async def test_calls_that_share_a_transaction_do_not_exceed_the_quota_together(
    shard: LiveShard,
) -> None:
    """The calls of another tenant, and the last call, are stored although one was refused."""
    calls = [
        of("acme", put("a"), put("b"), passages=3),
        of("acme", put("c"), put("a", "changed"), passages=3),
        of("bolt", put("a"), passages=1),
        of("acme", delete("a"), put("c"), passages=3),
    ]
    results = await asyncio.gather(*(store(shard, each) for each in calls), return_exceptions=True)
    refused = [isinstance(each, QuotaExceededError) for each in results]
    assert refused == [False, True, False, False]
    assert usage_in(shard.view, "acme").passages == 3
    assert not shard.view.segments[-1].segment.rows_of(stored_id("acme", "changed"))


async def test_counts_are_right_after_any_writes_merges_and_restarts(directory: Path) -> None:
    chance = random.Random(7)
    live = opened(directory)
    for step in range(120):
        tenant = chance.choice(["acme", "bolt"])
        if step % 25 == 24:
            await store(live, [Write(id_of_whole_tenant(tenant))])
        writes = []
        for _ in range(chance.randint(1, 4)):
            name = f"p{chance.randint(0, 5)}"
            text = " ".join(["é"] * chance.randint(1, 9))
            writes.append(delete(name) if chance.random() < 0.4 else put(name, text))
        try:
            written = await store(live, of(tenant, *writes, passages=4, bytes=60))
        except QuotaExceededError:
            pass
        else:
            usage = usage_in(live.view, tenant)
            assert written[-1].usage == usage
            assert usage.passages <= 4
            assert usage.bytes <= 60
        if step % 30 == 20:
            merged = Path(merge(live.directory, directory, live.sequence).directory)
            await live.swap(open_shard(merged, ef=64))
        if step % 30 == 29:
            base = live.directory
            await live.close()
            live = opened(directory, base)
    await live.close()


async def test_writes_for_a_journal_are_checked_before_they_are_published(
    shard: LiveShard,
) -> None:
    allowed = of("acme", put("one"), passages=2)
    await shard.check_writes(allowed)
    [counted] = await shard.with_usage(allowed, [Written(Outcome.STORED, 1)])
    assert counted.usage == TenantUsage(1, TITLE + 4)
    with pytest.raises(QuotaExceededError):
        await shard.check_writes(of("acme", put("one"), put("two"), passages=2))
    assert shard.sequence == 0


async def test_a_shard_whose_base_was_written_to_refuses_both_ways_of_writing_alike(
    shard: LiveShard, directory: Path
) -> None:
    """With a journal and without one; the number of the tenant's passages cannot be known."""
    os.truncate(directory / STORE, 0)
    writes = of("acme", put("one"), passages=2)
    with pytest.raises(NotLoadedError):
        await store(shard, writes)
    with pytest.raises(NotLoadedError):
        await shard.check_writes(writes)


def test_a_tenant_takes_at_most_200_bytes_and_others_none(shard: LiveShard) -> None:
    usages = TenantUsages()
    tracemalloc.start()
    try:
        for number in range(5_000):
            name, own = f"customer-{number:05}", TenantUsage(9, 5_000 + number)
            usages.of(name, shard.view)
            usages.apply({name: own}, own.passages)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / 5_000 <= 200


def test_counts_are_forgotten_if_writes_changed_more_than_their_own_passages(
    shard: LiveShard,
) -> None:
    usages = TenantUsages()
    own = usages.of("acme", shard.view)
    usages.apply({"acme": TenantUsage(1, 9)}, 1)
    assert usages.of("acme", shard.view) == own + TenantUsage(1, 9)
    usages.apply({"bolt": TenantUsage(1, 9)}, 0)
    assert usages.of("acme", shard.view) == own


def test_the_counts_of_few_tenants_are_kept(shard: LiveShard) -> None:
    usages = TenantUsages(max_tenants=2)
    for name in ("acme", "bolt", "cup", "acme"):
        assert usages.of(name, shard.view) == usage_in(shard.view, name)
    assert len(usages._counts) == 2
