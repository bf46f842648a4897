"""Deletes a tenant from a shard that takes writes, merges, and searches all files for its texts."""

import time
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from bench.tenants.collection import DIMENSION, ENCODER, TenantPassages
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.deadline import Deadline
from winnow.domain.tenant import id_of_whole_tenant
from winnow.domain.write import Write

_LIMITS = WriteLimits(
    shard=0,
    shards=1,
    dimension=DIMENSION,
    vocabulary=ENCODER.vocabulary,
    max_unmerged=100_000,
    has_tenants=True,
)
_EF = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """How a tenant was deleted."""

    passages_before: int
    passages_after: int
    """Passages that a request of the tenant sees once the write has returned."""
    seconds: float
    """Time of the write."""
    processor_seconds: float
    """Processor time of the process in this time."""
    merge_seconds: float
    files_before: int
    """Files with a text of the tenant before the deletion."""
    files_after: int
    """Files with a text of the tenant after the merge."""


def open_writable(directory: Path) -> LiveShard:
    """Opens a shard with tenants that was not merged yet."""
    return open_live(
        directory,
        lambda _: open_shard(directory, _EF),
        lambda _: _LIMITS,
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )


async def delete_tenant(directory: Path, tenant: TenantPassages) -> Deleted:
    """Deletes a tenant from the shard in `directory`, and merges the shard."""
    shard = open_writable(directory)
    # its texts are in the log, too
    await shard.write([Write(each.passage.id, 1, each) for each in tenant.passages[:100]], _soon())
    before, files_before = _count(shard, tenant), _files_with(directory, tenant.marker)
    started, used = time.perf_counter(), time.process_time()
    await shard.write([Write(id_of_whole_tenant(tenant.name))], _soon())
    processor_seconds = time.process_time() - used
    seconds, after = time.perf_counter() - started, _count(shard, tenant)
    started = time.perf_counter()
    done = merge(shard.directory, directory, shard.sequence)
    await shard.swap(open_shard(Path(done.directory), _EF))
    await shard.trim(shard.merged)
    remove_obsolete(directory, shard.merged)
    merge_seconds = time.perf_counter() - started
    files_after = _files_with(directory, tenant.marker)
    await shard.close()
    return Deleted(
        passages_before=before,
        passages_after=after,
        seconds=seconds,
        processor_seconds=processor_seconds,
        merge_seconds=merge_seconds,
        files_before=files_before,
        files_after=files_after,
    )


def _soon() -> Deadline:
    return Deadline.after(600)


def _count(shard: LiveShard, tenant: TenantPassages) -> int:
    return view_of_tenant(shard.view, tenant.name).passages


def _files_with(directory: Path, text: bytes) -> int:
    files = (path for path in directory.rglob("*") if path.is_file())
    return sum(text in path.read_bytes() for path in files)
