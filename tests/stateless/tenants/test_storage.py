"""What a front adds to the writes of a tenant, and what it tells."""

import pytest
from fakes import FakeShardWriter
from fed_front import INDEX, node_info
from prometheus_client import CollectorRegistry

from winnow.deadline import Deadline
from winnow.domain.partition import Partition
from winnow.domain.quota import Quotas, StorageQuota, StorageUse, TenantQuota, TenantUsage
from winnow.domain.shard import shard_of_tenant
from winnow.domain.tenant import stored_id
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import QuotaExceededError, quota_error
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.storing import WriteRouter
from winnow.stateless.feed.writers import OpenWriter, Writers
from winnow.stateless.tenants.quotas import TenantQuotas
from winnow.stateless.tenants.storage import TenantStorage

QUOTA = TenantQuota(passages=101, bytes=1_000)
OWN = [Write(stored_id("acme", "p"))]
SHARD = shard_of_tenant("acme", 2)


def storage(partition: Partition) -> TenantStorage:
    quotas = Quotas(by_tenant={"acme": QUOTA})
    return TenantStorage(TenantQuotas(lambda: quotas), lambda: partition)


def reported(passages: int, size: int) -> list[Written]:
    return [Written(Outcome.STORED, 1, usage=TenantUsage(passages, size))]


def test_only_writes_of_tenants_with_a_quota_have_limits() -> None:
    known = storage(Partition(2, [0, 1]))
    [limited] = known.limited(OWN, SHARD)
    assert limited.quota == StorageQuota(101, 1_000)
    for other in ("p", stored_id("bolt", "p")):
        assert known.limited([Write(other)], SHARD)[0].quota is None


def test_each_part_of_a_split_shard_has_its_share_and_the_use_is_their_sum() -> None:
    partition = Partition(2, [0, 1]).split(SHARD)
    known, parts = storage(partition), partition.parts_of(SHARD)
    assert [known.limited(OWN, part)[0].quota for part in parts] == [StorageQuota(51, 500)] * 2
    known.record(parts[0], OWN, reported(3, 30))
    assert known.use_of("acme") is None
    known.record(parts[1], OWN, reported(4, 40))
    assert known.use_of("acme") == StorageUse(TenantUsage(7, 70), StorageQuota(101, 1_000))


def test_a_refusal_tells_the_limits_of_the_tenant_and_no_node() -> None:
    known = storage(Partition(2, [0, 1]))
    error = quota_error("acme", "passages", 101, 101)
    from_node = QuotaExceededError(f"10.0.0.7:9001: {error}", error.metadata)
    assert str(known.refusal(OWN, from_node)) == str(error)


@pytest.mark.parametrize("usage", [None, TenantUsage(1, 1)])
def test_a_shard_that_reports_nothing_leaves_the_use_unknown(usage: TenantUsage | None) -> None:
    """As nodes of the version before."""
    known = storage(Partition(2, [0, 1]))
    known.record(SHARD, OWN, [Written(Outcome.STORED, 1, usage=usage)])
    assert (known.use_of("acme") is None) == (usage is None)


async def test_a_deleted_tenant_does_not_count_as_it_was_reported_before() -> None:
    """Otherwise parts of a split shard that get no writes count forever."""

    async def close() -> None:
        pass

    writers = Writers(
        lambda: ClusterView(INDEX, {0: ("node",), 1: ("node",)}),
        lambda: {ReplicaAt("node", each): node_info(each, "log") for each in range(2)},
        lambda *_: OpenWriter(FakeShardWriter(), lambda: False, close),
    )
    known = storage(Partition(2, [0, 1]))
    router = WriteRouter(writers, FeedMetrics(CollectorRegistry()), storage=known)
    known.record(SHARD, OWN, reported(101, 1_000))
    await router.delete_tenant("acme", Deadline.after(60))
    assert known.use_of("acme") is None
