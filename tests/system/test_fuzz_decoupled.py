"""Random messages to encoder and head nodes: each ends in a status that the protos name."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from head_server import ENCODER
from head_server import serving as serving_heads
from hypothesis import given, settings
from hypothesis import strategies as st
from tenacious import LONG
from text_server import INFO, VOCABULARY
from text_server import serving as serving_texts

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, TokenPrediction
from winnow.heads.heads import States
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.v1 import encoder_pb2, head_node_pb2

ENCODE = "/winnow.v1.EncoderService/Encode"
APPLY = "/winnow.v1.HeadNodeService/Apply"
EXAMPLES = settings(max_examples=60, print_blob=True)
ALLOWED = {"OK", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED"}

uint32 = st.integers(0, 9) | st.integers(0, 2**32 - 1)
formats = st.integers(0, 3) | st.integers(-(2**31), 2**31 - 1)
texts = st.text(max_size=20) | st.just("x" * 5_000)
token_states = st.builds(
    encoder_pb2.TokenStates,
    format=formats,
    tokens=uint32,
    width=st.just(3) | uint32,
    values=st.integers(0, 9).map(lambda n: b"\x00\x3c" * 3 * n) | st.binary(max_size=40),
    scales=st.integers(0, 9).map(lambda n: b"\x00\x00\x80\x3f" * n) | st.binary(max_size=9),
)
applying = st.builds(
    head_node_pb2.ApplyRequest,
    encoder_fingerprint=st.just(ENCODER.fingerprint) | texts,
    states=token_states,
    head_ids=st.lists(st.sampled_from(["a", "b", "c"]) | texts, max_size=34),
)
encoding = st.builds(
    encoder_pb2.EncodeRequest,
    token_ids=st.lists(st.integers(0, VOCABULARY - 1) | uint32, max_size=INFO.max_tokens + 2),
    fingerprint=st.just(INFO.fingerprint) | texts,
    states_format=formats,
)


class Zeros:
    """An encoder and heads that return nothing."""

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        states = np.zeros((len(ids) + 2, INFO.width), np.float16)
        return TextEncoding(np.zeros(INFO.dimension, np.float32), states)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        assert np.isfinite(states).all()
        return [Applied(head=head, version=1, prediction=TokenPrediction(())) for head in head_ids]

    async def warm_up(self, longest: int) -> None: ...

    def close(self) -> None: ...


class Caller:
    """Calls a server, both on a separate event loop, for consecutive examples."""

    def __init__(self, serving: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._runner, self._stack = asyncio.Runner(), contextlib.AsyncExitStack()
        self._channel = self._runner.run(self._start(serving))

    async def _start(
        self, serving: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> grpc.aio.Channel:
        server = await self._stack.enter_async_context(serving())
        channel = grpc.aio.insecure_channel(server.address)
        return await self._stack.enter_async_context(channel)

    def refuses_or_answers(self, method: str, data: bytes) -> None:
        """An error is one that the proto names, and says which field it means."""
        self._runner.run(self._call(method, data))

    async def _call(self, method: str, data: bytes) -> None:
        stub: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        call = stub(data, timeout=LONG)
        code, trailing = await call.code(), await call.trailing_metadata()
        status = status_pb2.Status.FromString(
            dict(trailing or ()).get("grpc-status-details-bin", b"")
        )
        assert code.name in ALLOWED, (code.name, status.message)
        assert len(status.message) < 2_000
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            bad = error_details_pb2.BadRequest()
            assert any(detail.Unpack(bad) for detail in status.details)
            assert all(violation.field for violation in bad.field_violations)

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def encoder() -> Iterator[Caller]:
    caller = Caller(lambda: serving_texts(Zeros()))
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def heads() -> Iterator[Caller]:
    caller = Caller(lambda: serving_heads(Zeros()))
    yield caller
    caller.close()


@EXAMPLES
@given(message=encoding)
def test_any_text_is_encoded_or_refused(encoder: Caller, message: Message) -> None:
    encoder.refuses_or_answers(ENCODE, message.SerializeToString())


@EXAMPLES
@given(message=applying)
def test_any_states_are_predicted_or_refused(heads: Caller, message: Message) -> None:
    heads.refuses_or_answers(APPLY, message.SerializeToString())


@EXAMPLES
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_call_are_answered_or_refused(
    encoder: Caller, heads: Caller, data: bytes
) -> None:
    encoder.refuses_or_answers(ENCODE, data)
    heads.refuses_or_answers(APPLY, data)
