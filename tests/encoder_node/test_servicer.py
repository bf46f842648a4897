"""What an encoder node says to what it is sent, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence

import grpc
import numpy as np
import pytest
from tenacious import LONG, happens
from text_server import INFO, VOCABULARY, TextServer, serving

from winnow.rpc import client_key
from winnow.rpc.channel import open_channel
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.v1 import encoder_pb2, encoder_pb2_grpc

FLOAT16 = encoder_pb2.STATES_FORMAT_FLOAT16


class Ones:
    """Says the same of every text, when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        await self.go_on.wait()
        states = np.ones((len(ids) + 2, INFO.width), np.float16)
        return TextEncoding(np.ones(2, np.float32), states)

    async def warm_up(self, longest: int) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def encoder() -> Ones:
    return Ones()


@pytest.fixture
async def server(encoder: Ones) -> AsyncIterator[TextServer]:
    async with serving(encoder, most=4) as made:
        yield made


@pytest.fixture
async def stub(server: TextServer) -> "AsyncIterator[encoder_pb2_grpc.EncoderServiceAsyncStub]":
    async with open_channel(server.address) as channel:
        yield encoder_pb2_grpc.EncoderServiceStub(channel)


@pytest.mark.parametrize("tokens", [0, 1, INFO.max_tokens])
async def test_texts_of_every_length_it_takes_are_encoded(
    stub: "encoder_pb2_grpc.EncoderServiceAsyncStub", tokens: int
) -> None:
    request = encoder_pb2.EncodeRequest(
        token_ids=[VOCABULARY - 1] * tokens, fingerprint=INFO.fingerprint, states_format=FLOAT16
    )
    reply = await stub.Encode(request, timeout=LONG)
    assert (reply.states.tokens, reply.states.width) == (tokens + 2, INFO.width)


@pytest.mark.parametrize(
    ("request_", "code", "said"),
    [
        (
            encoder_pb2.EncodeRequest(token_ids=[VOCABULARY], fingerprint=INFO.fingerprint),
            grpc.StatusCode.INVALID_ARGUMENT,
            "token_ids: 100 is not a token id",
        ),
        (
            encoder_pb2.EncodeRequest(token_ids=[2**32 - 1], fingerprint=INFO.fingerprint),
            grpc.StatusCode.INVALID_ARGUMENT,
            "token_ids: 4294967295 is not a token id",
        ),
        (
            encoder_pb2.EncodeRequest(token_ids=[1] * 9, fingerprint=INFO.fingerprint),
            grpc.StatusCode.INVALID_ARGUMENT,
            "token_ids: 9 tokens, but the encoder takes at most 8",
        ),
        (
            encoder_pb2.EncodeRequest(fingerprint=INFO.fingerprint, states_format=9),  # type: ignore[arg-type]
            grpc.StatusCode.INVALID_ARGUMENT,
            "states_format: 9 is not a known value",
        ),
        (
            encoder_pb2.EncodeRequest(token_ids=[1], fingerprint="x" * 9_000),
            grpc.StatusCode.FAILED_PRECONDITION,
            "the caller expects the encoder",
        ),
        (
            encoder_pb2.EncodeRequest(token_ids=[1]),
            grpc.StatusCode.FAILED_PRECONDITION,
            "with the same bundle",
        ),
    ],
)
async def test_a_text_that_cannot_be_encoded_is_refused_with_a_reason(
    stub: "encoder_pb2_grpc.EncoderServiceAsyncStub",
    request_: encoder_pb2.EncodeRequest,
    code: grpc.StatusCode,
    said: str,
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Encode(request_, timeout=LONG)
    assert caught.value.code() is code
    assert said in str(caught.value.details())
    assert len(str(caught.value.details())) < 1_000


async def test_a_greedy_client_does_not_keep_others_out(
    stub: "encoder_pb2_grpc.EncoderServiceAsyncStub", encoder: Ones, server: TextServer
) -> None:
    """Of four places a client that is alone gets all but what a newcomer needs."""
    encoder.go_on.clear()
    request = encoder_pb2.EncodeRequest(fingerprint=INFO.fingerprint)

    def ask(client: str) -> "asyncio.Future[encoder_pb2.EncodeResponse]":
        call = stub.Encode(request, timeout=LONG, metadata=client_key.outgoing_metadata(client))
        return asyncio.ensure_future(_reply(call))

    greedy = [ask("greedy") for _ in range(3)]
    await happens(lambda: server.admitted._load.reads_in_flight == 3)
    polite = ask("polite")
    await happens(lambda: server.admitted._load.reads_in_flight == 4)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask("greedy")
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert b"RetryInfo" in dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    encoder.go_on.set()
    await asyncio.gather(*greedy, polite)
    refused = {"result": "refused"}
    assert server.registry.get_sample_value("winnow_encoder_admission_total", refused) == 1
    assert server.registry.get_sample_value("winnow_encoder_texts_in_hand") == 0


async def _reply(call: Awaitable[encoder_pb2.EncodeResponse]) -> encoder_pb2.EncodeResponse:
    return await call


async def test_it_says_which_encoder_it_is(
    stub: "encoder_pb2_grpc.EncoderServiceAsyncStub",
) -> None:
    info = await stub.GetEncoderInfo(encoder_pb2.GetEncoderInfoRequest(), timeout=LONG)
    assert (info.bundle_name, info.fingerprint, info.width) == ("fake", "fake-print", 3)
