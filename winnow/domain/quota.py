"""The quota of a tenant: limits of what it stores and of how often it calls. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from winnow.domain.tenant import tenant_problem

_MAX_COUNT = (1 << 47) - 1
"""Limit of passages and bytes."""
_MIN_PER_SECOND, _MAX_PER_SECOND = 1e-6, 1e6
"""Limits of rates. With a lower rate, the wait would not fit into an error's field."""


class QuotaLimit(str, Enum):
    """A limit of a quota. The values are names in files, errors and metrics."""

    PASSAGES = "passages"
    BYTES = "bytes"
    QUESTIONS = "questions_per_second"
    WRITES = "writes_per_second"


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant has stored in a shard or an index, or how a write changes it."""

    passages: int = 0
    bytes: int = 0
    """Size of titles, texts and metadata, in bytes of UTF-8."""

    def __add__(self, other: "TenantUsage") -> "TenantUsage":
        """Returns the sum."""
        return TenantUsage(self.passages + other.passages, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class StorageQuota:
    """The limits of what a tenant stores in a shard or an index; None for no limit."""

    passages: int | None = None
    bytes: int | None = None
    """Limit of the size of titles, texts and metadata, in bytes of UTF-8."""

    def share_of(self, parts: int) -> "StorageQuota":
        """Returns the quota in one of `parts` equal parts of a shard, rounded up."""
        limits = (self.passages, self.bytes)
        return StorageQuota(*(each if each is None else -(-each // parts) for each in limits))

    def exceeded_by(self, usage: TenantUsage, change: TenantUsage) -> QuotaLimit | None:
        """Returns the limit that a change exceeds; None if it exceeds none.

        `usage` is that after the change. A change that adds nothing exceeds no limit, so that a
        tenant above a lowered limit can still delete and shorten passages.
        """
        if self.passages is not None and usage.passages > self.passages and change.passages > 0:
            return QuotaLimit.PASSAGES
        if self.bytes is not None and usage.bytes > self.bytes and change.bytes > 0:
            return QuotaLimit.BYTES
        return None


@dataclass(frozen=True, slots=True)
class StorageUse:
    """What a tenant has stored in an index, and how much it may store."""

    used: TenantUsage
    quota: StorageQuota = StorageQuota()

    def fill(self) -> Mapping[QuotaLimit, float]:
        """Returns the share of each limit that is used."""
        pairs = {
            QuotaLimit.PASSAGES: (self.used.passages, self.quota.passages),
            QuotaLimit.BYTES: (self.used.bytes, self.quota.bytes),
        }
        return {
            limit: used / quota if quota else 1.0
            for limit, (used, quota) in pairs.items()
            if quota is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantQuota:
    """The limits of one tenant; None for no limit."""

    passages: int | None = None
    """Maximum number of stored passages of an index."""
    bytes: int | None = None
    """Maximum size of stored titles, texts and metadata of an index, in bytes of UTF-8."""
    questions_per_second: float | None = None
    """Maximum mean rate of questions and of other reading calls at each front node."""
    writes_per_second: float | None = None
    """Maximum mean rate of written and deleted passages at each front node."""

    def __post_init__(self) -> None:
        """Raises ValueError if a limit is out of range."""
        for name in (QuotaLimit.PASSAGES.value, QuotaLimit.BYTES.value):
            count = getattr(self, name)
            if count is not None and not 0 <= count <= _MAX_COUNT:
                raise ValueError(f"{name} is {count}, but must be 0 to {_MAX_COUNT}")
        for name in (QuotaLimit.QUESTIONS.value, QuotaLimit.WRITES.value):
            rate = getattr(self, name)
            if rate is not None and not _MIN_PER_SECOND <= rate <= _MAX_PER_SECOND:
                raise ValueError(
                    f"{name} is {rate:g}, but must be {_MIN_PER_SECOND:g} to {_MAX_PER_SECOND:g}"
                )

    @property
    def storage(self) -> StorageQuota | None:
        """The limits of what the tenant stores; None if there are none."""
        if self.passages is None and self.bytes is None:
            return None
        return StorageQuota(self.passages, self.bytes)

    def limits(self) -> Mapping[QuotaLimit, float]:
        """Returns the limits that are set."""
        values = {limit: getattr(self, limit.value) for limit in QuotaLimit}
        return {limit: value for limit, value in values.items() if value is not None}


NO_QUOTA = TenantQuota()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The quotas of all tenants."""

    default: TenantQuota = NO_QUOTA
    """Quota of each tenant without another one."""
    by_tenant: Mapping[str, TenantQuota] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError if the name of a tenant is invalid."""
        for name in self.by_tenant:
            if problem := tenant_problem(name):
                raise ValueError(f"tenant {problem}")

    def of(self, tenant: str) -> TenantQuota:
        """Returns the quota of a tenant."""
        return self.by_tenant.get(tenant, self.default)
