"""Pages of the tenants of a view, in the order of their names; counts of words of one tenant.

Ids of passages begin with the name of their tenant, so the tenants are found in the order of ids:
by one search for each tenant, not by a pass over its passages.
"""

import numpy as np

from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.tenant_view import TenantWords
from winnow.content_node.shard.view import PlacedSegment, ShardView
from winnow.domain.listing import (
    StoredTenant,
    TenantListing,
    TenantPage,
    TenantWordCounts,
    TenantWordsRequest,
)
from winnow.domain.tenant import end_of_tenant, prefix_of, tenant_of
from winnow.inference.stop_signal import StopSignal


def list_tenants(view: ShardView, request: TenantListing, stop: StopSignal) -> TenantPage:
    """Returns the next page of tenants that have passages, with their number.

    Raises:
        StoppedError: `stop` was set.
        ArtefactError: a file was changed.

    """
    tenants: list[StoredTenant] = []
    name, complete = request.after_tenant, True
    while name := _next_tenant(view, name):
        check_stop(stop)
        passages = sum(_count_live(placed, name) for placed in view.segments)
        if passages and len(tenants) == request.limit:
            complete = False
            break
        if passages:
            tenants.append(StoredTenant(name, passages))
    return TenantPage(
        tenants=tuple(tenants), complete=complete, sequence=view.sequence, log_id=view.log_id
    )


def count_words(
    view: ShardView, request: TenantWordsRequest, _stop: StopSignal
) -> TenantWordCounts:
    """Counts the passages that contain each of the tokens. `view` is that of the tenant.

    A front adds up the counts of the parts of a split shard. Raises ArtefactError if a file was
    changed.
    """
    words = view.built_rarities
    assert isinstance(words, TenantWords)  # every request names a tenant
    containing = words.containing(np.array(request.token_ids, np.int64))
    return TenantWordCounts(
        containing=tuple(containing.tolist()),
        passages=words.passages,
        tokens=words.tokens,
        sequence=view.sequence,
        log_id=view.log_id,
    )


def _next_tenant(view: ShardView, tenant: str) -> str:
    """Returns the first tenant after `tenant` that has rows; empty if none follows."""
    found = []
    for placed in view.segments:
        rows = placed.segment.rows_after(end_of_tenant(tenant))[:1].tolist()
        found += [tenant_of(each) for each, _ in placed.segment.ids_and_sequences(rows)]
    return min(found, default="")


def _count_live(placed: PlacedSegment, tenant: str) -> int:
    rows = placed.segment.rows_with_prefix(prefix_of(tenant))
    return len(rows) if placed.live_rows is None else int(np.count_nonzero(placed.live_rows[rows]))
