"""`winnow.v1.ShardTransferService`: sends the files and the writes of shards to other nodes."""

from collections.abc import Callable
from typing import Any

from winnow.content_node.served_shards import ServedShards
from winnow.content_node.snapshots.contents import SnapshotFile
from winnow.content_node.transfer.batches import check_copied_log, next_batch, wait_for_write
from winnow.content_node.transfer.copies import OpenCopies, OpenCopy
from winnow.content_node.transfer.messages import batch_to_message
from winnow.content_node.transfer.source import TransferSource
from winnow.errors import IdentityError, UnavailableError, invalid_field
from winnow.quoting import shortened
from winnow.rpc.server import KIB
from winnow.v1 import shard_transfer_pb2, shard_transfer_pb2_grpc

TRANSFER_SERVICE = "winnow.v1.ShardTransferService"
_READ_BYTES = 1024 * KIB
_MAX_WAIT = 10.0
"""Maximum seconds that a reply waits for writes."""


class ShardTransferServicer(shard_transfer_pb2_grpc.ShardTransferServiceServicer):
    """Sends the shards of this node to the nodes that they move to."""

    def __init__(
        self,
        shards: ServedShards,
        copies: OpenCopies,
        of_index: Callable[[str], ServedShards] | None = None,
    ) -> None:
        """`of_index` returns the shards of an index by its id; None if `shards` are of one."""
        self._shards, self._copies, self._of_index = shards, copies, of_index

    async def OpenCopy(  # noqa: N802
        self, request: shard_transfer_pb2.OpenCopyRequest, context: Any
    ) -> shard_transfer_pb2.OpenCopyResponse:
        source, node = self._source(request.transfer), request.transfer.node
        source.shard.hold_log(node, 0)
        await source.shard.settle_log()

        def hold(copy: OpenCopy) -> None:
            source.shard.hold_log(node, copy.contents.sequence)

        copy = await self._copies.open(source.directory, node, hold)
        sequence = copy.contents.sequence
        await check_copied_log(source.shard, sequence, copy.contents.link)
        hold(copy)
        return shard_transfer_pb2.OpenCopyResponse(
            copy=copy.id,
            files=map(_file_to_message, copy.files.values()),
            sequence=sequence,
            takes_writes=source.takes_writes,
            moves=source.shard.custody.moves,
        )

    async def ReadFile(  # noqa: N802
        self, request: shard_transfer_pb2.ReadFileRequest, context: Any
    ) -> shard_transfer_pb2.ReadFileResponse:
        data = await self._copies.read(request.copy, request.path, request.start, _READ_BYTES)
        return shard_transfer_pb2.ReadFileResponse(data=data)

    async def ReadLog(  # noqa: N802
        self, request: shard_transfer_pb2.ReadLogRequest, context: Any
    ) -> shard_transfer_pb2.ReadLogResponse:
        shard, after = self._source(request.transfer).shard, request.after
        if after > shard.sequence:
            raise IdentityError(
                f"the writes after {after} were requested, but shard {request.transfer.shard} of "
                f"this node ends at write {shard.sequence}: copy the shard again"
            )
        shard.hold_log(request.transfer.node, after)
        await wait_for_write(shard, after + 1, min(request.wait_ms / 1e3, _MAX_WAIT))
        return batch_to_message(await next_batch(shard, after))

    async def HandOver(  # noqa: N802
        self, request: shard_transfer_pb2.HandOverRequest, context: Any
    ) -> shard_transfer_pb2.HandOverResponse:
        source = self._source(request.transfer)
        try:
            sequence = await source.shard.hand_over(request.transfer.node)
        except OSError as error:
            raise UnavailableError(
                f"cannot record the new owner in {source.directory}: {error.strerror}"
            ) from error
        return shard_transfer_pb2.HandOverResponse(sequence=sequence, log_id=source.shard.log_id)

    def _source(self, transfer: shard_transfer_pb2.Transfer) -> TransferSource:
        if not transfer.node:
            raise invalid_field("transfer.node", "it is empty")
        index_id, shards = transfer.index_id, self._shards
        if self._of_index is not None:
            shards = self._of_index(index_id)
        source = shards.searcher(transfer.shard).transfer
        if transfer.index_id != source.index_id:
            raise IdentityError(
                f"shard {transfer.shard} of index {shortened(transfer.index_id or '(none)')} was "
                f"requested, but this node serves index {source.index_id}"
            )
        return source


def _file_to_message(file: SnapshotFile) -> shard_transfer_pb2.ShardFile:
    entry = file.entry
    return shard_transfer_pb2.ShardFile(path=file.path, sha256=entry.sha256, bytes=entry.bytes)
