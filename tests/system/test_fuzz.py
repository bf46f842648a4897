"""Random messages through real servers: each ends in a status that the protos name.

A failure prints the message and the line (`reproduce_failure`) that sends it once more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from fakes import FakeHeads, FakeTextEncoder, nothing_found
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from passage_front import PassageFront
from prometheus_client import CollectorRegistry, generate_latest
from random_messages import (
    MARK,
    SHARD,
    metadata,
    passage_calls,
    predictions,
    questions,
    shard_message,
)
from tenacious import LONG
from whole_cluster import running

from bench.hostile.labels import unexpected_labels
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.prediction import TokenSpan
from winnow.domain.question import Question, ReadScope
from winnow.heads.admission import TextAdmission
from winnow.packaged import default_bundle
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.stateless.answer.admission import Admission, AdmittedQuestion
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.servicer import SERVICE, AnswerServicer
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.servicer import MAX_MESSAGE_BYTES, HeadServicer
from winnow.stateless.heads.servicer import SERVICE as HEAD_SERVICE
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.tokenizer import Tokenizer, Tokens
from winnow.v1 import answer_pb2, head_pb2, head_pb2_grpc

ANSWER = "/winnow.v1.AnswerService/Answer"
PREDICT = "/winnow.v1.HeadService/Predict"
LIST_HEADS = "/winnow.v1.HeadService/ListHeads"
PASSAGES = "/winnow.v1.PassageService/"
SHARD_PATH = "/winnow.v1.ShardService/"
EXAMPLES = settings(max_examples=60, print_blob=True)
REFUSED = {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE"}
OF_HEADS = REFUSED | {"NOT_FOUND"}
OF_NODES = REFUSED | {"FAILED_PRECONDITION", "ABORTED"}


class Answering:
    """An answerer that returns no answers."""

    fields = frozenset({"year", "lang"})

    def required_writes(self) -> dict[int, int]:
        return {}

    def count_shards(self, _question: Question) -> int:
        return 1

    def tokenise(self, question: Question) -> TokenisedQuestion:
        return TokenisedQuestion(question.text, Tokens((1,), ((0, 1),)), truncated=False)

    async def answer(
        self, admitted: AdmittedQuestion, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        return nothing_found(admitted)


class Served:
    """A server and a channel to it on a separate event loop, used by consecutive examples."""

    def __init__(self, start: Callable[[contextlib.AsyncExitStack], Coroutine[Any, Any, str]]):
        """`start` gives HOST:PORT, and leaves on the stack what is to be put away."""
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        address = self._runner.run(start(self._stack))
        self._channel = self._runner.run(self._connect(address))

    async def _connect(self, address: str) -> grpc.aio.Channel:
        return await self._stack.enter_async_context(grpc.aio.insecure_channel(address))

    def call(self, method: str, data: bytes, sent: Any = ()) -> tuple[str, status_pb2.Status]:
        """The name of the status, and its details."""
        return self._runner.run(self._call(method, data, sent))

    async def _call(self, method: str, data: bytes, sent: Any) -> tuple[str, status_pb2.Status]:
        stub: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        call = stub(data, timeout=LONG, metadata=tuple(sent))
        code, trailing = await call.code(), await call.trailing_metadata()
        details = dict(trailing or ()).get("grpc-status-details-bin", b"")
        return code.name, status_pb2.Status.FromString(details)

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


REGISTRY = CollectorRegistry()


async def start_front(stack: contextlib.AsyncExitStack) -> str:
    load = ReadLoad(LoadSettings(max_reads=200), time.monotonic, lambda: None)
    admission = Admission(load, 64, AdmissionMetrics(REGISTRY))
    defaults = QuestionDefaults(
        passages_to_read=10,
        answers=3,
        read_scope=ReadScope.GLOBAL,
        max_answer_tokens=10,
        serves_heads=True,
    )
    core = AnswerCore(defaults, admission, FrontMetrics(REGISTRY))
    core.set_answerer(Answering())  # type: ignore[arg-type]
    server = Server(
        services=[SERVICE, HEAD_SERVICE],
        interceptor=CallInterceptor(RpcMetrics(REGISTRY)),
        max_message_bytes=MAX_MESSAGE_BYTES,
    )
    servicer = AnswerServicer(core, LONG)
    servicer.add_to(server.grpc)
    heads = HeadServicer(predict_core(), LONG)
    head_pb2_grpc.add_HeadServiceServicer_to_server(heads, server.grpc)
    port = await server.start("127.0.0.1:0")
    stack.push_async_callback(server.drain, 0)
    return f"127.0.0.1:{port}"


def predict_core() -> PredictCore:
    heads = FakeHeads({"intent": ("a", "b")}, {"names": (TokenSpan("x", 0, 1, 0.5),)})
    tokenizer = Tokenizer(default_bundle() / "tokenizer.json")
    groups = EncoderGroups(
        [
            EncoderGroup(
                "fake",
                "f",
                tokenizer=tokenizer,
                encoder=FakeTextEncoder(),
                max_tokens=254,
                heads=heads,
            )
        ]
    )
    metrics = HeadMetrics(REGISTRY)
    return PredictCore(groups, Predictor(groups, metrics), TextAdmission(64, metrics), metrics)


@pytest.fixture(scope="module")
def front() -> Iterator[Served]:
    served = Served(start_front)
    yield served
    served.close()


@pytest.fixture(scope="module")
def node(indexes: dict[int, Path], bundle: Bundle) -> Iterator[Served]:
    """Starts a content node with the real models."""

    async def start(stack: contextlib.AsyncExitStack) -> str:
        cluster = await stack.enter_async_context(running(indexes[1], bundle))
        return cluster.nodes[0].address

    served = Served(start)
    yield served
    served.close()


@pytest.fixture(scope="module")
def passages() -> Iterator[Served]:
    """Starts a front over fake shards with passages."""
    made = PassageFront(2)
    for number in range(9):
        made.put(f"d#{number}", document="d", year=2010)

    async def start(stack: contextlib.AsyncExitStack) -> str:
        return await stack.enter_async_context(made.serving())

    served = Served(start)
    yield served
    served.close()


def refuses(name: str, status: status_pb2.Status, allowed: set[str] = REFUSED) -> None:
    """Expects a status that the protos name, and an error that names a field or request."""
    assert name in {"OK", *allowed}, (name, status.message)
    assert len(status.message) < 2_000
    kinds = {detail.TypeName() for detail in status.details}
    if name != "OK":
        assert "google.rpc.RequestInfo" in kinds
    if name == "INVALID_ARGUMENT":
        bad = error_details_pb2.BadRequest()
        assert any(detail.Unpack(bad) for detail in status.details)
        assert all(violation.field for violation in bad.field_violations)


@EXAMPLES
@given(question=questions, sent=metadata)
def test_any_question_is_answered_or_refused_by_a_field(
    front: Served, question: answer_pb2.AnswerRequest, sent: Any
) -> None:
    refuses(*front.call(ANSWER, question.SerializeToString(), sent))


@EXAMPLES
@given(question=questions, data=st.data())
def test_a_corrupted_question_is_answered_or_refused(
    front: Served, question: answer_pb2.AnswerRequest, data: st.DataObject
) -> None:
    refuses(*front.call(ANSWER, spoilt(question.SerializeToString(), data)))


@EXAMPLES
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_question_are_answered_or_refused(front: Served, data: bytes) -> None:
    refuses(*front.call(ANSWER, data))


@EXAMPLES
@given(request=predictions, sent=metadata)
def test_any_texts_are_predicted_or_refused_by_a_field(
    front: Served, request: head_pb2.PredictRequest, sent: Any
) -> None:
    refuses(*front.call(PREDICT, request.SerializeToString(), sent), OF_HEADS)


@EXAMPLES
@given(request=predictions, data=st.data())
def test_corrupted_texts_are_predicted_or_refused(
    front: Served, request: head_pb2.PredictRequest, data: st.DataObject
) -> None:
    refuses(*front.call(PREDICT, spoilt(request.SerializeToString(), data)), OF_HEADS)


@EXAMPLES
@given(method=st.sampled_from([PREDICT, LIST_HEADS]), data=st.binary(max_size=200))
def test_any_bytes_as_texts_are_predicted_or_refused(
    front: Served, method: str, data: bytes
) -> None:
    refuses(*front.call(method, data), OF_HEADS)


@pytest.mark.parametrize(
    "request_",
    [
        head_pb2.PredictRequest(text="a" * 100_000, head_ids=["intent"]),
        head_pb2.PredictRequest(texts=["a"] * 1_000, head_ids=["intent"]),
        head_pb2.PredictRequest(text="a", head_ids=[f"head-{n}" for n in range(1_000)]),
        head_pb2.PredictRequest(texts=["\U0001f600" * 2_001] * 15, head_ids=["\U0001f600"] * 32),
    ],
    ids=["100 kB of text", "1000 texts", "1000 heads", "nothing right"],
)
def test_a_value_beyond_a_limit_is_refused_with_its_field(front: Served, request_: Message) -> None:
    name, status = front.call(PREDICT, request_.SerializeToString())
    refuses(name, status)
    assert name == "INVALID_ARGUMENT"


def test_the_largest_request_that_is_valid_is_predicted(front: Served) -> None:
    ids = ["intent", "names"]
    request = head_pb2.PredictRequest(texts=["\U0001f600" * 2_000] * 16, head_ids=ids)
    assert front.call(PREDICT, request.SerializeToString())[0] == "OK"


def test_no_metric_label_comes_from_client_input(front: Served) -> None:
    for name in ("x-winnow-client", "x-request-id", f"x-{MARK}"):
        front.call(ANSWER, b"\x0a\x03who", [(name, MARK)])
    request = head_pb2.PredictRequest(text=MARK, head_ids=[MARK], ring=MARK)
    front.call(PREDICT, request.SerializeToString())
    request.ring = ""
    front.call(PREDICT, request.SerializeToString())
    front.call(f"/winnow.v1.AnswerService/{MARK}", b"")
    page = generate_latest(REGISTRY).decode()
    assert MARK not in page
    assert list(unexpected_labels(page)) == []


@settings(EXAMPLES, max_examples=80)
@given(call=st.sampled_from(SHARD).flatmap(lambda m: st.tuples(st.just(m), shard_message(m))))
def test_any_call_to_a_node_is_answered_or_refused_by_a_field(
    node: Served, call: tuple[str, Message]
) -> None:
    method, message = call
    refuses(*node.call(f"{SHARD_PATH}{method}", message.SerializeToString()), OF_NODES)


@EXAMPLES
@given(method=st.sampled_from(SHARD), data=st.binary(max_size=200))
def test_any_bytes_as_a_call_to_a_node_are_answered_or_refused(
    node: Served, method: str, data: bytes
) -> None:
    refuses(*node.call(f"{SHARD_PATH}{method}", data), OF_NODES)


def spoilt(message: bytes, data: st.DataObject) -> bytes:
    """Replaces some bytes of a message by other bytes."""
    at = data.draw(st.integers(0, len(message)))
    cut = data.draw(st.integers(0, 3))
    return message[:at] + data.draw(st.binary(max_size=3)) + message[at + cut :]


@EXAMPLES
@given(call=passage_calls, sent=metadata)
def test_any_call_for_passages_returns_passages_or_names_a_field(
    passages: Served, call: Message, sent: Any
) -> None:
    method = f"{PASSAGES}{call.DESCRIPTOR.name.removesuffix('Request')}"
    refuses(*passages.call(method, call.SerializeToString(), sent))
