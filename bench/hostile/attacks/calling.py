"""gRPC calls whose messages are any bytes."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc

_TIMEOUT = 2.0
_OWN: tuple[tuple[str, Any], ...] = (
    # or channels of one process to one address share a connection
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)


class Caller:
    """Calls any method of one server with any bytes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def __call__(
        self,
        method: str,
        data: bytes,
        metadata: Sequence[tuple[str, str | bytes]] = (),
        timeout: float = _TIMEOUT,
    ) -> str:
        """The name of the status."""
        call = self.method(method)(data, timeout=timeout, metadata=tuple(metadata))
        return str((await call.code()).name)

    def method(self, name: str) -> "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]":
        """A method that takes and returns bytes as they are."""
        made: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(name)
        return made


@contextlib.asynccontextmanager
async def calling(
    address: str, compression: grpc.Compression | None = None
) -> AsyncIterator[Caller]:
    """A connection of its own."""
    async with grpc.aio.insecure_channel(address, options=_OWN, compression=compression) as channel:
        yield Caller(channel)
