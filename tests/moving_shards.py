"""A small shard on a node that other nodes can copy, follow and take over, over real gRPC."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from fakes import joint_retrieval
from listening import new_server
from live_writes import DIMENSION
from prometheus_client import CollectorRegistry

from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.transfer.copies import OpenCopies
from winnow.content_node.transfer.remote import PeerNodes
from winnow.content_node.transfer.servicer import TRANSFER_SERVICE, ShardTransferServicer
from winnow.content_node.transfer.source import TransferSource
from winnow.deadline import Deadline
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Outcome, Write
from winnow.v1 import shard_transfer_pb2_grpc

INDEX = "index"
LIMITS = WriteLimits(shard=0, shards=1, dimension=DIMENSION, vocabulary=1_000, max_unmerged=10_000)


def shard_info(shard: int) -> ShardInfo:
    """What a node reports of a shard of an index that was built with one shard."""
    return ShardInfo(
        shard=shard,
        shards=1,
        index_id=INDEX,
        passages=0,
        dimension=DIMENSION,
        bundle_name="",
        bundle_fingerprint="",
    )


def opened(directory: Path) -> LiveShard:
    """Opens a shard as a node does that has just started."""
    open_segment = partial(open_shard, ef=64, exact=False, exact_up_to=0)
    return open_live(
        directory,
        lambda trimmed: open_newest(directory, trimmed, open_segment, feeding=True),
        lambda base: replace(LIMITS, shard=base.manifest.shard, shards=base.manifest.shards),
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )


async def merged(shard: LiveShard, directory: Path) -> StoredSegment:
    """Merges all writes, serves the new base, and trims the writes that no node copies."""
    generation = Path(merge(shard.directory, directory, shard.sequence).directory)
    base = open_shard(generation, ef=64, exact=False, exact_up_to=0)
    await shard.swap(base)
    await shard.trim(shard.sequence)
    return base


async def store(shard: LiveShard, *writes: Write) -> int:
    """Stores writes; returns the number of the last one."""
    written = await shard.write(writes, Deadline.after(60))
    assert all(each.outcome is Outcome.STORED for each in written)
    return written[-1].sequence


@dataclass
class Holder:
    """A node with one shard."""

    directory: Path
    shard: LiveShard
    address: str
    served: ServedShard
    names: dict[str, str] = field(default_factory=dict)

    def allow_transfer(self, takes_writes: bool = True) -> None:
        self.served.allow_transfer(
            lambda: TransferSource(
                shard=self.shard,
                directory=self.directory,
                index_id=INDEX,
                takes_writes=takes_writes,
            )
        )

    async def restart(self) -> None:
        """Closes the shard, and opens it again from its files."""
        await self.shard.close()
        self.shard = opened(self.directory)
        self.allow_transfer()


@asynccontextmanager
async def holding(directory: Path) -> AsyncIterator[Holder]:
    """Serves the transfers of a shard."""
    served, copies = ServedShard(0), OpenCopies(open_shard_files)
    server = new_server(TRANSFER_SERVICE)
    shard_transfer_pb2_grpc.add_ShardTransferServiceServicer_to_server(
        ShardTransferServicer(ServedShards([served], joint=joint_retrieval()), copies), server.grpc
    )
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    holder = Holder(directory, opened(directory), address, served)
    holder.allow_transfer()
    try:
        yield holder
    finally:
        await server.drain(0)
        await copies.close()
        await holder.shard.close()


def moves(name: str, **addresses: str) -> PeerNodes:
    """The nodes with these addresses, for the node with this name."""
    return PeerNodes(name, lambda node: addresses.get(node, ""))
