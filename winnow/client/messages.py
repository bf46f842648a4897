"""A client that takes and returns protobuf messages, for tools that measure a cluster."""

from functools import cached_property

import grpc

from winnow.client.aio import AsyncConnection
from winnow.client.channels import SERVICE
from winnow.errors import UnavailableError
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of
from winnow.v1 import answer_pb2, answer_pb2_grpc

_SERVING_TIMEOUT = 10.0
"""Seconds. A busy machine may take more than one to connect and reply; a refusal is immediate."""


class AnswerClient(AsyncConnection):
    """Sends questions as messages to a front node, or to several."""

    @cached_property
    def _stub(self) -> "answer_pb2_grpc.AnswerServiceAsyncStub":
        return answer_pb2_grpc.AnswerServiceStub(self._channel)

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        """Asks a question. Raises a WinnowError with the server's status and message."""
        try:
            options = self._options.arguments(timeout, ())
            return await reply_of(self._stub.Answer(request, **options))
        except grpc.aio.AioRpcError as error:
            message = f"{error.code().name}: {error.details()}"
            raise error_of(error.code(), message, error.trailing_metadata()) from error

    async def expect_serving(self) -> None:
        """Raises UnavailableError unless the front node answers questions now."""
        if not await self._serving_within(_SERVING_TIMEOUT, [SERVICE]):
            raise UnavailableError(
                f"no front node serves {SERVICE} at {self.address}: start one with `winnow up "
                "--index DIR`, wait until it is ready, or use the port of a front node"
            )
