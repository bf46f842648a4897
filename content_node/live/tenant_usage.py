"""What the tenants of a shard have stored, counted once and then kept up to date.

A count is a sum over the passages of its tenant. It is made at the first write with a quota since
the shard was opened, and each later write changes it. A merge changes no count. So files have no
counts that could be wrong. Tenants that do not write take no memory.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from winnow.content_node.passages.tenants import list_tenants
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import ShardView
from winnow.domain.listing import TenantListing
from winnow.domain.quota import TenantUsage
from winnow.inference.stop_signal import StopSignal

_MAX_TENANTS = 10_000
"""Maximum number of tenants whose counts are kept; together they take two megabytes."""
_PAGE = 1_000
"""Number of tenants that are listed at a time."""
_PASSAGE = 1 << 48
"""A count is one integer, passages times this number plus bytes: an object would take more."""


class TenantUsages:
    """The counts of the tenants that have written with a quota. Used by one thread at a time."""

    def __init__(self, max_tenants: int = _MAX_TENANTS) -> None:
        """Knows no count yet. More than `max_tenants` tenants replace the first one."""
        self._counts: dict[str, int] = {}
        self._max_tenants = max_tenants

    def of(self, tenant: str, view: ShardView) -> TenantUsage:
        """Returns what a tenant has stored. `view` has all writes that were applied here.

        The first call for a tenant takes some microseconds for each of its passages.

        Raises ArtefactError if a file was changed.
        """
        count = self._counts.get(tenant)
        if count is None:
            usage = usage_in(view, tenant)
            if len(self._counts) >= self._max_tenants:
                del self._counts[next(iter(self._counts))]
            self._counts[tenant] = usage.passages * _PASSAGE + usage.bytes
            return usage
        return TenantUsage(*divmod(count, _PASSAGE))

    def apply(self, changes: Mapping[str, TenantUsage], passages: int) -> None:
        """Adds the changes by stored writes to the known counts.

        `passages`: by how much the writes changed the number of passages of all tenants. If the
        sum of `changes` differs, a write has changed more than its own passage. Then all counts
        are made again.
        """
        if self._counts and sum(each.passages for each in changes.values()) != passages:
            self._counts.clear()
        for tenant, change in changes.items():
            if tenant in self._counts:
                self._counts[tenant] += change.passages * _PASSAGE + change.bytes

    def forget(self, tenants: Iterable[str]) -> None:
        """Forgets the counts of tenants whose changes are not known."""
        for tenant in tenants:
            self._counts.pop(tenant, None)


def usage_in(view: ShardView, tenant: str) -> TenantUsage:
    """Counts what a tenant has stored in a view."""
    usage = TenantUsage()
    for placed in view_of_tenant(view, tenant).segments:
        assert placed.live_rows is not None  # `view_of_tenant` sets it
        rows = np.flatnonzero(placed.live_rows).tolist()
        usage += TenantUsage(len(rows), placed.segment.content_bytes(rows))
    return usage


def usages_in(view: ShardView) -> dict[str, TenantUsage]:
    """Counts what each tenant with passages has stored in a view, in the order of their names.

    Takes some microseconds for each passage: use a thread. Raises ArtefactError if a file was
    changed.
    """
    usages: dict[str, TenantUsage] = {}
    complete, last = not view.manifest.has_tenants, ""
    while not complete:
        page = list_tenants(view, TenantListing(limit=_PAGE, after_tenant=last), StopSignal())
        for tenant in page.tenants:
            last = tenant.name
            usages[last] = usage_in(view, last)
        complete = page.complete
    return usages
