"""The edge of the front node, over real gRPC."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from fakes import nothing_found
from google.rpc import error_details_pb2, status_pb2
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens

from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.question import Question, ReadScope
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.rpc import client_key
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.stateless.answer.admission import Admission, AdmittedQuestion
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.servicer import SERVICE, AnswerServicer
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.tokenizer import Tokens
from winnow.v1 import answer_pb2, answer_pb2_grpc

SETTINGS = LoadSettings(
    max_reads=20, usable_share=1.0, calm_share=0.2, min_granted_share=0.3, reserved_share=0.0
)


class Slow:
    """An answerer that waits for the word."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.go_on = asyncio.Event()

    def required_writes(self) -> dict[int, int]:
        return {}

    def count_shards(self, _question: Question) -> int:
        return 3

    def tokenise(self, question: Question) -> TokenisedQuestion:
        return TokenisedQuestion(question.text, Tokens((1,), ((0, 1),)), truncated=False)

    async def answer(
        self, admitted: AdmittedQuestion, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        question = admitted.question
        self.asked.append(question)
        if question.text == "wait":
            await self.go_on.wait()
        return nothing_found(admitted)


class Front:
    """A served front and a connection to it."""

    def __init__(self, answerer: Slow, load: ReadLoad, channel: grpc.aio.Channel) -> None:
        self.answerer, self.load = answerer, load
        self._stub = answer_pb2_grpc.AnswerServiceStub(channel)

    async def ask(self, text: str, passages: int, client: str = "") -> Any:
        request = answer_pb2.AnswerRequest(question=text, passages_to_read=passages)
        return await self.send(request, client)

    async def send(self, request: answer_pb2.AnswerRequest, client: str = "") -> Any:
        return await self._stub.Answer(request, timeout=LONG, metadata=((client_key.KEY, client),))

    @contextlib.asynccontextmanager
    async def busy(self, passages: int, client: str) -> AsyncIterator[None]:
        """While a question waits."""
        task = asyncio.ensure_future(self.ask("wait", passages, client))
        await happens(lambda: self.load.reads_in_flight > 0)
        yield
        self.answerer.go_on.set()
        await task


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    registry = CollectorRegistry()
    load = ReadLoad(SETTINGS, time.monotonic, lambda: None)
    admission = Admission(load, 64, AdmissionMetrics(registry))
    core = AnswerCore(
        QuestionDefaults(
            passages_to_read=10, answers=3, read_scope=ReadScope.GLOBAL, max_answer_tokens=10
        ),
        admission,
        FrontMetrics(registry),
    )
    answerer = Slow()
    core.set_answerer(answerer)  # type: ignore[arg-type]
    server = Server(services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(registry)))
    servicer = AnswerServicer(core, LONG)
    servicer.add_to(server.grpc)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Front(answerer, load, channel)
    await server.drain(0)


async def test_a_reply_says_what_was_asked_and_what_was_granted(front: Front) -> None:
    calm = await front.ask("who", 10)
    assert (calm.passages_asked, calm.passages_granted) == (10, 10)
    async with front.busy(12, "other"):
        dimmed = await front.ask("who", 10)
    assert dimmed.passages_asked == 10
    assert 3 <= dimmed.passages_granted < 10
    assert front.answerer.asked[-1].passages_to_read == dimmed.passages_granted


async def test_a_client_that_takes_all_is_refused_and_another_one_is_not(front: Front) -> None:
    async with front.busy(14, "greedy"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await front.ask("who", 30, "greedy")
        assert (await front.ask("who", 10, "modest")).passages_granted > 0
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    metadata = dict(caught.value.trailing_metadata())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    retry = error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() > 0


async def test_an_option_with_an_unknown_value_is_an_invalid_argument(front: Front) -> None:
    request = answer_pb2.AnswerRequest(question="who", retriever=9)  # type: ignore[arg-type]
    with pytest.raises(
        grpc.aio.AioRpcError, match="retriever: 9 is none of DENSE, SPARSE"
    ) as caught:
        await front.send(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
