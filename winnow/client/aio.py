"""The client for programs with an event loop."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.client.access import Access
from winnow.client.calls import (
    DEFAULT_ADDRESS,
    DEFAULT_TIMEOUT,
    Metadata,
    caller,
    failure,
    identified,
    seconds,
)
from winnow.client.channels import SERVICE, check_address, open_aio_channel
from winnow.client.client import LOOK_EVERY, LOOK_TIMEOUT
from winnow.client.credentials import Credentials
from winnow.client.feeding import (
    DEFAULT_FEED_TIMEOUT,
    Ids,
    PassageFields,
    delete_message,
    put_message,
    results_of,
)
from winnow.client.options import Options, request_message
from winnow.client.predicting import predict_message, predictions_of
from winnow.client.predictions import Predictions
from winnow.client.received import reply_of
from winnow.client.replies import Reply
from winnow.deadline import Deadline
from winnow.domain.write import WriteResult
from winnow.errors import UnavailableError
from winnow.rpc.replying import until_replied
from winnow.v1 import answer_pb2_grpc, feed_pb2_grpc, head_pb2_grpc


class AsyncClient:
    """Asks as `Client` does, within one event loop; `async with` closes it at the end."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        client_name: str = "",
        credentials: Credentials | None = None,
    ) -> None:
        """As `Client` has it. Needs no running loop yet."""
        check_address(address)
        self.address = address
        self._caller = caller(client_name)
        self._access = Access(address, credentials)

    async def ask(
        self,
        question: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
        **options: Unpack[Options],
    ) -> Reply:
        """Asks once; arguments and errors are those of `Client.ask`. Cancelling ends the call."""
        request, metadata = request_message(question, options), identified(request_id)
        stub = answer_pb2_grpc.AnswerServiceStub(self._channel)
        return reply_of(question, await self._call(stub.Answer, request, timeout, metadata))

    async def predict(
        self,
        text: str | Sequence[str],
        heads: str | Sequence[str],
        *,
        ring: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> Predictions:
        """Applies heads; arguments and errors are those of `Client.predict`."""
        request, metadata = predict_message(text, heads, ring), identified(request_id)
        stub = head_pb2_grpc.HeadServiceStub(self._channel)
        return predictions_of(request, await self._call(stub.Predict, request, timeout, metadata))

    async def put(
        self,
        passages: PassageFields | Sequence[PassageFields],
        *,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Stores passages; arguments and errors are those of `Client.put`. Cancelling ends the
        call, which may have stored some.
        """
        request, metadata = put_message(passages), identified(request_id)
        stub = feed_pb2_grpc.FeedServiceStub(self._channel)
        return results_of(await self._call(stub.Put, request, timeout, metadata))

    async def delete(
        self,
        ids: Ids,
        *,
        version: int | None = None,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Deletes passages; arguments and errors are those of `Client.delete`."""
        request, metadata = delete_message(ids, version), identified(request_id)
        stub = feed_pb2_grpc.FeedServiceStub(self._channel)
        return results_of(await self._call(stub.Delete, request, timeout, metadata))

    async def available(self) -> bool:
        """Whether a front node says that it serves."""
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        health = health_pb2_grpc.HealthStub(self._channel)
        try:
            reply = await health.Check(request, timeout=LOOK_TIMEOUT)
        except grpc.aio.AioRpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until a front node serves. Raises UnavailableError if none did within `timeout`
        seconds.
        """
        deadline = Deadline.after(timeout)
        while not await self.available():
            if deadline.left() <= 0:
                raise UnavailableError(f"no front node at {self.address} serves")
            await asyncio.sleep(LOOK_EVERY)

    async def close(self) -> None:
        """Ends the connection; questions still asked are cancelled."""
        await self._channel.close()

    async def _call(self, method: Any, request: Any, timeout: float, metadata: Metadata) -> Any:
        try:
            sent = (*metadata, *self._caller, *self._access.metadata())
            return await until_replied(method(request, timeout=seconds(timeout), metadata=sent))
        except grpc.aio.AioRpcError as error:
            raise failure(error, self.address, timeout, metadata) from error

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """Belongs to the loop that runs when it is first used."""
        return open_aio_channel(self.address, self._access)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
