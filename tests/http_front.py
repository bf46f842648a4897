"""A front that serves HTTP: real sockets, the real core, and a fake answerer."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow import reply_headers
from winnow.deadline import Deadline
from winnow.domain.answered import Answer, Answered, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Passage
from winnow.domain.question import Question, ReadScope
from winnow.domain.reading import Reading
from winnow.errors import WinnowError
from winnow.inference.fair_threads import FairThreads
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.rpc.interceptor import CallInterceptor
from winnow.security.from_settings import ServerSecurity
from winnow.security.peers import PLAIN_TEXT
from winnow.stateless.answer.admission import Admission, AdmittedQuestion
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.servicer import SERVICE, pack
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.composing.access import FrontAccess, open_gate
from winnow.stateless.composing.front import Front
from winnow.stateless.composing.http import serve_http
from winnow.stateless.early_rejection import EarlyRejection
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.http.answers import answer_operations
from winnow.stateless.http.call import Gate, HttpOperation, OperationLimits
from winnow.stateless.http.connection_limiter import ConnectionLimiter
from winnow.stateless.http.outer_app import OuterApp
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer
from winnow.text.tokenizer import Tokens

TEXT = "Marta Quendelheim won it — in Łódź, in 2031."


class Leading:
    """An answerer that waits for questions that start with `wait`, and fails for `break`."""

    fields = None

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.clients: list[str] = []
        self.left: list[float] = []
        self.cancelled = 0
        self.fails: WinnowError | None = None
        self.go_on = asyncio.Event()

    def required_writes(self) -> dict[int, int]:
        return {}

    def count_shards(self, _question: Question) -> int:
        return 1

    def tokenise(self, question: Question) -> TokenisedQuestion:
        return TokenisedQuestion(question.text, Tokens((1,), ((0, 1),)), truncated=False)

    async def answer(
        self, admitted: AdmittedQuestion, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        question = admitted.question
        self.asked.append(question)
        self.clients.append(admitted.client)
        self.left.append(deadline.left())
        if question.text.startswith("wait"):
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if question.text.startswith("tell"):
            reply_headers.add("x-told", "something")
        if self.fails is not None:
            raise self.fails
        if question.text.startswith("break"):
            raise RuntimeError("a secret of this machine")
        return answered(question)


METADATA = {"years": list(range(2_000)), "by": {"name": "Zoë", "nobody": None}}
"""Metadata of the passages in answers to questions that begin with "long"."""


def answered(question: Question) -> Answered:
    """Returns a result with as many answers as the question requests."""
    metadata = json.dumps(METADATA if question.text.startswith("long") else {"year": 2031})
    passage = Passage("zorblax", "Zorblax Prize", TEXT, metadata)
    reading = Reading(
        passage=passage,
        start=0,
        end=17,
        score=8.5,
        relevance=3.5,
        span_score=5.0,
        distance=0.0,
        hybrid_distance=0.0,
        words=2.0,
    )
    coverage = Coverage(
        (ShardCoverage(shard=0, passages=12, status=ShardStatus.SEARCHED, reason="", sequence=7),)
    )
    answers = (Answer(reading, 0),) * question.answers
    return Answered(
        answers=answers,
        has_answer=True,
        coverage=coverage,
        timings=Timings(),
        passages_asked=question.passages_to_read,
        passages_granted=question.passages_to_read,
        passages_read=3,
        passages_needed=1,
        read_scope=question.read_scope,
        question_truncated=False,
    )


class HttpFront:
    """The parts of the front; `serving` starts it."""

    def __init__(
        self,
        most: int = 64,
        gate: Gate = open_gate,
        security: ServerSecurity | None = None,
        tracer: Tracer = NO_TRACER,
        packs: bool = False,
        **settings: Any,
    ) -> None:
        self.registry, self.answerer, self.gate = CollectorRegistry(), Leading(), gate
        self.security = security or ServerSecurity()
        load = ReadLoad(
            LoadSettings(max_reads=1_000, reserved_share=0.0), time.monotonic, lambda: None
        )
        self.admission = Admission(load, most, AdmissionMetrics(self.registry))
        defaults = QuestionDefaults(
            passages_to_read=10, answers=3, read_scope=ReadScope.GLOBAL, max_answer_tokens=10
        )
        self.stack = contextlib.AsyncExitStack()
        packing = partial(pack, self._threads()) if packs else None
        metrics = FrontMetrics(self.registry)
        self.core = AnswerCore(defaults, self.admission, metrics, pack=packing)
        self.core.set_answerer(self.answerer)  # type: ignore[arg-type]
        given = {"shards": ["127.0.0.1:1"], "http_listen": "127.0.0.1:0", **settings}
        self.settings = FrontSettings.load(given, None, {})
        self.calls: list[HttpOperation] = []
        self.boundary = CallInterceptor(RpcMetrics(self.registry), tracer=tracer)
        finished = self.boundary.record_part
        limits = OperationLimits(LONG, self.admission.refusal)
        self.add(answer_operations(self.core, limits, finished))
        self.address, self.ready = "", True

    def _threads(self) -> FairThreads:
        threads = FairThreads(1, "packing")
        self.stack.callback(threads.close)
        return threads

    def add(self, calls: Iterable[HttpOperation]) -> None:
        self.calls.extend(calls)

    def sample(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def calls_ended(self, method: str, status: str) -> float:
        return self.sample("winnow_request_seconds_count", method=method, status=status)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[httpx.AsyncClient]:
        """Serves on a free port; yields an HTTP client."""
        async with self.stack:
            rejection = EarlyRejection()
            rejection.add(SERVICE, self.admission.refusal)
            front = Front(
                settings=self.settings,
                bundle=None,  # type: ignore[arg-type]
                registry=self.registry,
                metrics=None,  # type: ignore[arg-type]
                readiness=None,  # type: ignore[arg-type]
                runtimes=None,  # type: ignore[arg-type]
                interceptor=self.boundary,
                services=None,  # type: ignore[arg-type]
                server=None,
                rejection=rejection,
                access=FrontAccess(self.security, PLAIN_TEXT, gate=self.gate),
                stack=self.stack,
                http_operations=self.calls,
            )
            with _patience_with_clients():
                (listener,) = serve_http(front).servers
            self.server = listener.server
            port = await self.server.start(listener.listen)
            self.address = f"127.0.0.1:{port}"
            await self.server.set_serving(self.ready)
            try:
                async with httpx.AsyncClient(
                    base_url=f"http://{self.address}", timeout=LONG
                ) as client:
                    yield client
            finally:
                await self.server.drain(0)


@contextlib.contextmanager
def _patience_with_clients() -> Iterator[None]:
    """Gives clients of servers that are made in the context `LONG` seconds for each step.

    A client may be late with its headers, its body or reading its reply on a busy machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        limits = vars(ConnectionLimiter)["__init__"].__kwdefaults__
        for name in ("header_timeout", "reply_timeout"):
            patch.setitem(limits, name, LONG)
        patch.setitem(vars(OuterApp)["__init__"].__kwdefaults__, "reply_timeout", LONG)
        yield


class Wire:
    """A connection on which a test writes HTTP by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, text: str | bytes) -> None:
        self.writer.write(text.encode() if isinstance(text, str) else text)

    async def reply(self) -> tuple[int, dict[str, str], Any]:
        """Reads the next reply; returns its status, headers and JSON body."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), LONG)).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ") for line in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, json.loads(body) if body else None

    async def closed(self) -> None:
        """Waits until the server has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await asyncio.wait_for(self.reader.read(65_536), LONG):
                pass


@contextlib.asynccontextmanager
async def wire(address: str) -> AsyncIterator[Wire]:
    """Opens a connection to HOST:PORT."""
    host, _, port = address.rpartition(":")
    made = Wire(*await asyncio.open_connection(host, int(port)))
    try:
        yield made
    finally:
        made.writer.close()
        with contextlib.suppress(ConnectionError):
            await made.writer.wait_closed()


def asking(question: str, path: str = "/v1/answer", headers: str = "") -> str:
    """Returns a complete HTTP request with a question."""
    body = json.dumps({"question": question})
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n{headers}\r\n{body}"
    )
