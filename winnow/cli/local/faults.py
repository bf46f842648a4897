"""Why a node that runs serves nothing."""

import grpc

from winnow.errors import NotLoadedError
from winnow.rpc.channel import open_channel
from winnow.rpc.status import error_of
from winnow.v1 import shard_pb2, shard_pb2_grpc

_TIMEOUT = 1.0


async def not_loaded(address: str) -> str:
    """What the node at HOST:PORT says of a shard that it could not load; empty if it does not."""
    async with open_channel(address) as channel:
        stub = shard_pb2_grpc.ShardServiceStub(channel)
        try:
            await stub.GetShardInfo(shard_pb2.GetShardInfoRequest(), timeout=_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            said = error.details() or ""
            fault = error_of(error.code(), said, error.trailing_metadata())
            return said if isinstance(fault, NotLoadedError) else ""
    return ""
