"""A client that speaks in messages, for the tools that measure a cluster."""

import grpc

from winnow.client.aio import AsyncConnection
from winnow.client.channels import SERVICE
from winnow.client.credentials import Credentials
from winnow.errors import UnavailableError
from winnow.rpc.replying import until_replied
from winnow.rpc.status import error_of
from winnow.v1 import answer_pb2, answer_pb2_grpc


class AnswerClient(AsyncConnection):
    """Asks a front node, or several alike."""

    def __init__(
        self, address: str, name: str = "", credentials: Credentials | None = None
    ) -> None:
        """Takes the arguments of `Client`; `name` is the name of the client."""
        super().__init__(address, name, credentials)
        self._stub = answer_pb2_grpc.AnswerServiceStub(self._channel)

    async def ask(
        self, request: answer_pb2.AnswerRequest, timeout: float
    ) -> answer_pb2.AnswerResponse:
        """Asks once. Raises a WinnowError with the status and the message of the server."""
        try:
            options = self._options.of(timeout, ())
            return await until_replied(self._stub.Answer(request, **options))
        except grpc.aio.AioRpcError as error:
            message = f"{error.code().name}: {error.details()}"
            raise error_of(error.code(), message, error.trailing_metadata()) from error

    async def expect_serving(self) -> None:
        """Raises UnavailableError unless the service serves."""
        if not await self.available():
            raise UnavailableError(
                f"{self.address} does not serve {SERVICE}: start it with `winnow up --index DIR`, "
                "or wait until it is ready"
            )
