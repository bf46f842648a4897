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

    def limits(self) -> Mapping[QuotaLimit, float]:
        """Returns the limits that are set."""
        values = {limit: getattr(self, limit.value) for limit in QuotaLimit}
        return {limit: value for limit, value in values.items() if value is not None}


NO_QUOTA = TenantQuota()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The quotas of all tenants."""

    default: TenantQuota = NO_QUOTA
    """Quota of each tenant that has none of its own."""
    by_tenant: Mapping[str, TenantQuota] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError if the name of a tenant is invalid."""
        for name in self.by_tenant:
            if problem := tenant_problem(name):
                raise ValueError(f"tenant {problem}")

    def of(self, tenant: str) -> TenantQuota:
        """Returns the quota of a tenant."""
        return self.by_tenant.get(tenant, self.default)
