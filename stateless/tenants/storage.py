"""What tenants store in one index: adds limits to writes, and keeps what nodes report.

Content nodes count and refuse. A front knows only what they reported with its last writes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from winnow.domain.partition import Partition, depth_of
from winnow.domain.quota import QuotaLimit, StorageUse, TenantUsage
from winnow.domain.tenant import tenant_of
from winnow.domain.write import Write, Written
from winnow.errors import QuotaExceededError, UnavailableError, quota_error
from winnow.stateless.tenants.quotas import NEAR_SHARE, TenantQuotas

_MAX_TENANTS = 10_000
"""Maximum number of tenants whose reports are kept."""


class TenantStorage:
    """What the tenants of an index store, and how much they may store."""

    def __init__(self, quotas: TenantQuotas, partition: Callable[[], Partition]) -> None:
        """`partition` returns the shards of the index now."""
        self._quotas, self._partition = quotas, partition
        self._reported: dict[str, dict[int, TenantUsage]] = {}
        """By tenant and shard, what the shard reported last; the latest tenant last."""

    def limited(self, writes: Sequence[Write], shard: int) -> Sequence[Write]:
        """Returns the writes of a call to a shard with the limits of their tenant.

        A part of a split shard has its share of the limits.
        """
        tenant = tenant_of(writes[0].id)
        quota = self._quotas.quota_of(tenant).storage if tenant else None
        if quota is None:
            return writes
        share = quota.share_of(2 ** depth_of(shard, self._partition().built))
        return [replace(each, quota=share) for each in writes]

    def record(self, shard: int, writes: Sequence[Write], written: Sequence[Written]) -> None:
        """Records what a shard reported after writes."""
        if not written or (usage := written[-1].usage) is None:
            return
        tenant = tenant_of(writes[0].id)
        shards = self._reported.pop(tenant, {})
        if len(self._reported) >= _MAX_TENANTS:
            del self._reported[next(iter(self._reported))]
        self._reported[tenant] = shards | {shard: usage}
        use = self.use_of(tenant)
        for limit, fill in use.fill().items() if use is not None else ():
            if fill > NEAR_SHARE:
                quota = getattr(self._quotas.quota_of(tenant), limit.value)
                self._quotas.note_near(tenant, limit, quota)

    def forget(self, tenant: str) -> None:
        """Forgets the reports of a tenant whose passages were deleted."""
        self._reported.pop(tenant, None)

    def refusal(self, writes: Sequence[Write], error: QuotaExceededError) -> QuotaExceededError:
        """Counts the refusal of a shard; returns its error with the limits of the whole tenant."""
        tenant, limit = tenant_of(writes[0].id), QuotaLimit(error.metadata["limit"])
        self._quotas.count_refusal(limit)
        use = self.use_of(tenant)
        if use is None or len(self._parts(tenant)) == 1:
            used, quota = error.metadata["used"], error.metadata["quota"]
            return quota_error(tenant, limit.value, int(quota), int(used))
        return quota_error(
            tenant, limit.value, getattr(use.quota, limit.value), getattr(use.used, limit.value)
        )

    def use_of(self, tenant: str) -> StorageUse | None:
        """Returns what a tenant stores; None without limits, or if not every shard reported."""
        quota = self._quotas.quota_of(tenant).storage
        reported = self._reported.get(tenant, {})
        if quota is None or not reported:
            return None
        try:
            parts = self._parts(tenant)
        except UnavailableError:  # the writes are stored all the same
            return None
        if any(part not in reported for part in parts):
            return None
        return StorageUse(sum((reported[part] for part in parts), TenantUsage()), quota)

    def _parts(self, tenant: str) -> Sequence[int]:
        return self._partition().shards_of_tenant(tenant)
