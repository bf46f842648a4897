"""Times the first questions of an archived shard, and its archiving."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bench.figures import Figure, quantile_figures
from bench.tenants.collection import Collection, TenantPassages
from bench.tenants.deletion import open_writable
from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.files import restore_shard
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.metrics import ArchiveMetrics
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.storage.pull import MB, NoProgress

_DEPTH = RetrievalDepth(passages=10, candidates=100, by_words=100)
_WORD_WEIGHT = 0.01
_SECONDS = 600.0


async def archive_and_ask(
    directory: Path, archive: Path, tenants: Sequence[TenantPassages], collection: Collection
) -> list[Figure]:
    """Archives the shard, and asks a question of a tenant, as often as there are `tenants`.

    Before each question, the system drops the files of the shard and of the archive from its cache.
    """
    restores: list[float] = []

    async def open_shard() -> OpenedShard:
        def opened() -> Any:
            started = time.perf_counter()
            restore_shard(directory, "", NoProgress())
            restores.append(time.perf_counter() - started)
            return open_writable(directory)

        live = await asyncio.to_thread(opened)
        return OpenedShard(
            live=live, searcher=live, writer=live, copied=live, catch_up=no_catch_up, info=live
        )

    async def no_catch_up() -> None:
        """The shard follows no journal."""

    async def close_shard() -> None:
        await opened_shards.pop().live.close()

    opened_shards: list[OpenedShard] = []
    shard = ArchivableShard(
        directory,
        Archives(str(archive), ArchivePolicy(0.0), asyncio.Semaphore(1)),
        open_shard=open_shard,
        close_shard=close_shard,
        merge_lock=asyncio.Lock(),
        metrics=ArchiveMetrics(CollectorRegistry()),
    )
    await shard.begin()
    restores.clear()
    archived, asked, processor = [], [], []
    for tenant in tenants:
        question = collection.question(tenant.name)
        assert shard.gate.opened is not None
        opened_shards.append(shard.gate.opened)
        started = time.perf_counter()
        if not await shard.archive():
            raise RuntimeError("the shard could not be archived: see the log")
        archived.append(time.perf_counter() - started)
        drop_from_cache(directory)
        drop_from_cache(archive)
        started, used = time.perf_counter(), time.process_time()
        async with shard.gate.enter(Deadline.after(_SECONDS)) as inside:
            own = view_of_tenant(inside.live.view, tenant.name)
            for hit in retrieve(own, question, _DEPTH, _WORD_WEIGHT).hits[:10]:
                own.load(hit.row)
        asked.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
        del inside, own
    assert shard.gate.opened is not None
    await shard.gate.opened.live.close()
    return [
        Figure("archive", "size", _bytes_in(archive) / MB, "MB"),
        *quantile_figures("archive", "first question of an archived shard", asked, 0.5, 1.0),
        *quantile_figures("archive", "processor time of it", processor, 0.5, 1.0),
        *quantile_figures("archive", "of it: copying and verifying the files", restores, 0.5, 1.0),
        *quantile_figures("archive", "archiving for the first time", archived[:1], 1.0),
        *quantile_figures("archive", "archiving again without writes", archived[1:], 0.5, 1.0),
    ]


def _bytes_in(directory: Path) -> int:
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())


def drop_from_cache(directory: Path) -> None:
    """Asks the system to drop the files of a directory from its cache."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
