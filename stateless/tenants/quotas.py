"""The quotas of tenants at a front: counts calls, refuses them, and tells who is near a limit.

Each front counts calls by itself. What tenants store is counted by content nodes.
"""

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial

import structlog

from winnow import reply_headers
from winnow.deadline import Clock, Sleep
from winnow.domain.quota import QuotaLimit, Quotas, TenantQuota
from winnow.errors import TENANT_QUOTA, Fault, OverloadedError
from winnow.policy.rates import Rate, TokenBuckets
from winnow.policy.recent import RecentKeys
from winnow.stateless.tenants.metrics import QuotaMetrics

_log = structlog.get_logger("stateless.tenants")
NEAR_SHARE = 0.9
"""Share of a limit from which a tenant is near it."""
_NEAR_SECONDS = 60.0
"""Seconds for which a tenant counts as near a limit after a request."""
_MAX_NEAR = 1_000
"""Maximum number of tenants that are known to be near a limit."""
_MIN_BURST = 10.0
"""Smallest burst of which a tenant can be near the end without a refusal."""
_ROUNDING = 1e-6
"""Tolerance for rounding of what is left of a rate."""
_LONGEST_WAIT = 1.0
"""Seconds after which a waiting call looks at its quota again, which may have been raised."""
_MIN_BUCKETS = 1_000
"""Number of buckets from which full ones are forgotten."""
_UNITS = {
    QuotaLimit.QUESTIONS: "questions a second",
    QuotaLimit.WRITES: "writes a second",
}


class TenantQuotas:
    """The quotas of all tenants, and their calls at this front."""

    def __init__(
        self,
        quotas: Callable[[], Quotas],
        metrics: QuotaMetrics | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`quotas` returns the quotas of now."""
        self._quotas, self._metrics, self.sleep = quotas, metrics, sleep
        self._buckets = {limit: TokenBuckets(clock) for limit in _UNITS}
        self._max_buckets = _MIN_BUCKETS
        self._near = {limit: RecentKeys(_NEAR_SECONDS, _MAX_NEAR, clock) for limit in QuotaLimit}
        if metrics is not None:
            for limit, tenants in self._near.items():
                metrics.watch(limit, partial(_count, tenants))

    def limits_of(self, tenant: str, *, counts_rates: bool) -> "TenantLimits":
        """Returns the limits of a tenant; without `counts_rates` those of an administrator."""
        return TenantLimits(self, tenant, counts_rates)

    def quota_of(self, tenant: str) -> TenantQuota:
        """Returns the quota of a tenant now."""
        return self._quotas().of(tenant)

    def take(self, tenant: str, limit: QuotaLimit, rate: Rate, amount: int) -> float:
        """Counts calls of a tenant; returns 0, or the seconds to wait if there are too many."""
        buckets = self._buckets[limit]
        wait = buckets.take(tenant, rate, amount)
        is_large = rate.burst >= _MIN_BURST  # a single call takes most of a smaller one
        if wait or (is_large and buckets.missing(tenant) > NEAR_SHARE * rate.burst):
            self.note_near(tenant, limit, rate.per_second)
        if not wait:
            self._tell(limit, rate, buckets.missing(tenant))
        if len(buckets) > self._max_buckets:
            buckets.forget_full()
            self._max_buckets = max(_MIN_BUCKETS, 2 * len(buckets))
        return wait

    @staticmethod
    def _tell(limit: QuotaLimit, rate: Rate, missing: float) -> None:
        """Adds what is left of a rate to the reply, in the fields of the IETF's draft "RateLimit
        header fields for HTTP".
        """
        name, window = limit.value.partition("_")[0], math.ceil(rate.burst / rate.per_second)
        left = math.floor(max(rate.burst - missing, 0.0) + _ROUNDING)
        seconds = math.ceil(missing / rate.per_second - _ROUNDING)
        reply_headers.add("ratelimit-policy", f'"{name}";q={rate.burst:.0f};w={window}')
        reply_headers.add("ratelimit", f'"{name}";r={left};t={seconds}')

    def refusal(self, tenant: str, limit: QuotaLimit, rate: Rate, wait: float) -> OverloadedError:
        """Counts a refusal; returns its error."""
        self.count_refusal(limit)
        fault = Fault(TENANT_QUOTA, {"limit": limit.value, "quota": f"{rate.per_second:g}"})
        message = (
            f"tenant {tenant} exceeds its quota of {rate.per_second:g} {_UNITS[limit]} at this "
            f"front node; try again in {wait:.2f} s"
        )
        # its own load is no secret: see `caller.message_of`
        return OverloadedError(message, wait, [fault]).with_public(message)

    def count_refusal(self, limit: QuotaLimit) -> None:
        """Counts a refusal."""
        if self._metrics is not None:
            self._metrics.count_refusal(limit)

    def note_near(self, tenant: str, limit: QuotaLimit, quota: float) -> None:
        """Records that a tenant is near a limit. Logs it, unless it was near it a minute ago."""
        near = self._near[limit]
        known = near.keys()
        if tenant not in known:
            _log.warning("tenant is near its quota", tenant=tenant, limit=limit.value, quota=quota)
        near.add(tenant)


class TenantLimits:
    """The limits of one tenant for one request."""

    def __init__(self, quotas: TenantQuotas, tenant: str, counts_rates: bool) -> None:
        """`counts_rates`: whether the calls count; those of administrators do not."""
        self._quotas, self._tenant, self._counts_rates = quotas, tenant, counts_rates

    @property
    def quota(self) -> TenantQuota:
        """The quota now: a stream follows its changes."""
        return self._quotas.quota_of(self._tenant)

    def admit_question(self) -> None:
        """Counts a question; raises OverloadedError if there are too many."""
        self._admit(QuotaLimit.QUESTIONS, 1)

    def admit_writes(self, writes: int) -> None:
        """Counts writes; raises OverloadedError if there are too many."""
        self._admit(QuotaLimit.WRITES, writes)

    async def wait_for_question(self) -> None:
        """Counts a question; returns once it is allowed."""
        await self._wait(QuotaLimit.QUESTIONS, 1)

    async def wait_for_writes(self, writes: int) -> None:
        """Counts writes; returns once they are allowed."""
        await self._wait(QuotaLimit.WRITES, writes)

    def _admit(self, limit: QuotaLimit, amount: int) -> None:
        rate = self._rate(limit)
        if rate is not None and (wait := self._quotas.take(self._tenant, limit, rate, amount)):
            raise self._quotas.refusal(self._tenant, limit, rate, wait)

    async def _wait(self, limit: QuotaLimit, amount: int) -> None:
        while (rate := self._rate(limit)) is not None and (
            wait := self._quotas.take(self._tenant, limit, rate, amount)
        ):
            await self._quotas.sleep(min(wait, _LONGEST_WAIT))

    def _rate(self, limit: QuotaLimit) -> Rate | None:
        if not self._counts_rates:
            return None
        per_second = getattr(self.quota, limit.value)
        return None if per_second is None else Rate(per_second, max(per_second, 1.0))


UNLIMITED = TenantQuotas(Quotas)
"""The quotas of a front without a file of quotas."""
NO_LIMITS = TenantLimits(UNLIMITED, "", counts_rates=False)
"""The limits of requests without quotas."""


def _count(tenants: RecentKeys) -> float:
    """Returns the number of tenants for the metrics page, which another thread renders."""
    return float(tenants.count())
