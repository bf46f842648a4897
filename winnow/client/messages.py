"""A client that speaks in messages, for the tools that measure a cluster."""

from types import TracebackType
from typing import Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.client.access import Access
from winnow.client.channels import SERVICE, check_address, open_aio_channel
from winnow.client.credentials import Credentials
from winnow.errors import UnavailableError
from winnow.rpc import client_key
from winnow.rpc.replying import until_replied
from winnow.rpc.status import error_of
from winnow.v1 import answer_pb2, answer_pb2_grpc


class AnswerClient:
    """Asks a front node, or several alike; an asynchronous context manager."""

    def __init__(
        self, address: str, name: str = "", credentials: Credentials | None = None
    ) -> None:
        """`address`: of one front node or of several, as `winnow.client.channels` has it; `name`:
        the key under which the load is shared fairly; `credentials`: as `Client` has them.
        """
        self.address = address
        self._metadata = ((client_key.KEY, name),) if name else ()
        check_address(address)
        self._access = Access(address, credentials)
        self._channel = open_aio_channel(address, self._access)
        self._stub = answer_pb2_grpc.AnswerServiceStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        """Asks once; raises a WinnowError that says what the server said."""
        try:
            sent = (*self._metadata, *self._access.metadata())
            call = self._stub.Answer(request, timeout=timeout, metadata=sent)
            return await until_replied(call)
        except grpc.aio.AioRpcError as error:
            message = f"{error.code().name}: {error.details()}"
            raise error_of(error.code(), message, error.trailing_metadata()) from error

    async def serving(self) -> bool:
        """Whether the answer service says that it serves."""
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        try:
            reply = await self._health.Check(request, timeout=1.0)
        except grpc.aio.AioRpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def expect_serving(self) -> None:
        """Raises UnavailableError unless the service serves."""
        if not await self.serving():
            raise UnavailableError(
                f"{self.address} does not serve {SERVICE}: start it with `winnow up --index DIR`, "
                "or wait until it is ready"
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._channel.close()
