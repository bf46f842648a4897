"""Calls other content nodes whose shards move to this node."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import grpc

from winnow.content_node.transfer.following import Handover, LogBatch
from winnow.content_node.transfer.messages import batch_of_message
from winnow.convert.shard import report_of_message
from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport
from winnow.errors import UnavailableError
from winnow.quoting import shortened
from winnow.rpc import call_metadata
from winnow.rpc.channel import open_unshared
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.storage.pull import PulledFile
from winnow.storage.storage import OnCopied
from winnow.v1 import shard_pb2, shard_pb2_grpc, shard_transfer_pb2, shard_transfer_pb2_grpc

Reply = TypeVar("Reply")
_CALL_SECONDS = 30.0
_REPORT_SECONDS = 3.0
_OPEN_SECONDS = 600.0
"""Seconds that opening a copy may take: the node copies and checks its log."""
_WAIT_MS = 2_000
"""Milliseconds that the other node waits for a write before it replies."""


class PeerShard:
    """A shard of another node. Methods raise a WinnowError if the node fails or refuses."""

    def __init__(
        self, channel: grpc.aio.Channel, address: str, *, index_id: str, shard: int, node: str
    ) -> None:
        """`node` is the name of this node, which the shard moves to."""
        self._stub = shard_transfer_pb2_grpc.ShardTransferServiceStub(channel)
        self.channel = channel
        self.address, self.shard = address, shard
        self._transfer = shard_transfer_pb2.Transfer(index_id=index_id, shard=shard, node=node)

    async def hand_over(self) -> Handover:
        """Makes the other node take no more writes, because this node takes them."""
        request = shard_transfer_pb2.HandOverRequest(transfer=self._transfer)
        reply = await self._call(self._stub.HandOver(request, **_call_options()))
        return Handover(reply.sequence, reply.log_id)

    async def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
        """Yields the writes after a sequence number in batches, without end; some are empty."""
        while True:
            batch = await self.read_log(after)
            yield batch
            after += len(batch.writes)

    async def read_log(self, after: int, wait_ms: int = _WAIT_MS) -> LogBatch:
        """Reads the next writes after a sequence number; waits up to `wait_ms` for the first."""
        request = shard_transfer_pb2.ReadLogRequest(
            transfer=self._transfer, after=after, wait_ms=wait_ms
        )
        reply = await self._call(self._stub.ReadLog(request, **_call_options()))
        return await asyncio.to_thread(batch_of_message, reply)

    async def open_copy(self) -> "PeerCopy":
        """Opens a consistent copy of the shard's files."""
        request = shard_transfer_pb2.OpenCopyRequest(transfer=self._transfer)
        call = self._stub.OpenCopy(request, **_call_options(_OPEN_SECONDS))
        return PeerCopy(self, await self._call(call))

    async def read_file(self, copy: str, path: str, start: int) -> bytes:
        """Reads the next part of a file of an open copy; empty at the end of the file."""
        request = shard_transfer_pb2.ReadFileRequest(copy=copy, path=path, start=start)
        reply = await self._call(self._stub.ReadFile(request, **_call_options()))
        return bytes(reply.data)

    async def _call(self, call: Awaitable[Reply]) -> Reply:
        try:
            return await reply_of(call)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise UnavailableError(
                    f"{self.address}: the node's version cannot move shards: update the node"
                ) from error
            raise error_of_node(error, self.address) from error


class PeerCopy:
    """An open copy of a shard's files on another node."""

    def __init__(self, peer: PeerShard, contents: shard_transfer_pb2.OpenCopyResponse) -> None:
        self._peer, self._id = peer, contents.copy
        self._loop = asyncio.get_running_loop()
        self.files = {
            _checked_path(each.path, peer): PulledFile(each.path, each.sha256, each.bytes)
            for each in contents.files
        }
        self.sequence = contents.sequence
        """The number of the last write that the files hold."""
        self.takes_writes = contents.takes_writes
        """Whether the other node takes writes, so that the copy must follow its log."""
        self.moves = contents.moves
        """Number of times that the shard was handed over so far."""

    def download(self, path: str, target: Path, on_copied: OnCopied) -> None:
        """Copies a file, in any thread but that of the event loop.

        Raises UnavailableError if the node fails, and OSError if `target` cannot be written.
        """
        start = 0
        with target.open("wb") as file:
            while data := self._read(path, start):
                file.write(data)
                on_copied(len(data))
                start += len(data)

    def _read(self, path: str, start: int) -> bytes:
        reading = self._peer.read_file(self._id, path, start)
        return asyncio.run_coroutine_threadsafe(reading, self._loop).result()


def _checked_path(path: str, peer: PeerShard) -> str:
    """Returns the path of a file within a shard; raises UnavailableError for any other."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise UnavailableError(
            f"{peer.address}: the node sent the invalid file path {shortened(path)}"
        )
    return path


class PeerNodes:
    """Calls other nodes by their names.

    Each use has a separate connection, so that copies delay no other calls.
    """

    def __init__(
        self,
        name: str,
        address_of: Callable[[str], str],
        peers: PeerChannels = PLAIN_TEXT,
        *,
        index_id: str = "",
    ) -> None:
        """`name` is the name of this node.

        `address_of` returns the address of a node by its name; empty if the name is unknown.
        `index_id` is the id of a named index; empty for the default index of the nodes.
        """
        self.name, self._address_of, self._peers = name, address_of, peers
        self._index_id = index_id

    @asynccontextmanager
    async def open_shard(self, node: str, index_id: str, shard: int) -> AsyncIterator[PeerShard]:
        """Opens a shard on the node with this name; raises UnavailableError if it is unknown."""
        async with self._open_channel(node) as channel:
            yield PeerShard(
                channel, self._address_of(node), index_id=index_id, shard=shard, node=self.name
            )

    async def report(self, node: str) -> NodeReport:
        """Asks a node which shards it serves. Raises a WinnowError if it does not reply."""
        address = self._address_of(node)
        async with self._open_channel(node) as channel:
            stub = shard_pb2_grpc.ShardServiceStub(channel)
            options = _call_options(_REPORT_SECONDS, self._index_id)
            call = stub.ListShards(shard_pb2.ListShardsRequest(), **options)
            try:
                return report_of_message(await reply_of(call), address)
            except grpc.aio.AioRpcError as error:
                raise error_of_node(error, address) from error

    @asynccontextmanager
    async def _open_channel(self, node: str) -> AsyncIterator[grpc.aio.Channel]:
        address = self._address_of(node)
        if not address:
            raise UnavailableError(
                f"node {node} is not in the assignment, so its address is unknown: restart that "
                f"node"
            )
        channel = open_unshared(address, self._peers)
        try:
            yield channel
        finally:
            await channel.close()


def _call_options(seconds: float = _CALL_SECONDS, index_id: str = "") -> dict[str, Any]:
    deadline = Deadline.after(seconds)
    return {"timeout": timeout(deadline), "metadata": call_metadata.build(index_id=index_id)}
