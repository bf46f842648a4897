"""A fake front node with scripted replies, served by gRPC on a free port."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from listening import listening, new_server

from winnow.client.channels import SERVICE
from winnow.errors import WinnowError
from winnow.v1 import answer_pb2, answer_pb2_grpc


class ScriptedFront(answer_pb2_grpc.AnswerServiceServicer):
    """Keeps all requests; replies with `reply`, which may be an error, or hangs."""

    def __init__(self, **server: Any) -> None:
        self.server = new_server(SERVICE, **server)
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(self, self.server.grpc)
        self.address = ""
        self.reply: answer_pb2.AnswerResponse | WinnowError = answer_pb2.AnswerResponse()
        self.hangs = False
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.requests: list[answer_pb2.AnswerRequest] = []
        self.metadata: dict[str, Any] = {}

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        self.requests.append(request)
        self.metadata = dict(context.invocation_metadata())
        self.asked.set()
        try:
            while self.hangs:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if isinstance(self.reply, WinnowError):
            raise self.reply
        return self.reply


@contextlib.asynccontextmanager
async def scripted_front(**server: Any) -> AsyncIterator[ScriptedFront]:
    """Serves a scripted front; `server` has arguments of its `Server`."""
    front = ScriptedFront(**server)
    async with listening(front.server) as front.address:
        await front.server.set_serving(True)
        yield front


def full_reply() -> answer_pb2.AnswerResponse:
    """Returns a reply with something in every field."""
    text = "The cafe\u0301 in Łódź was opened by Zoe\u0308 Nowak in 1923."
    start = text.index("Zoe")
    reply = answer_pb2.AnswerResponse(
        has_answer=True,
        coverage=answer_pb2.Coverage(
            passages_known=12, passages_searched=7, passages_failed=5, complete=False
        ),
        timings=answer_pb2.Timings(
            queue_ms=0.5, tokenise_ms=0.25, encode_ms=4, retrieve_ms=2, read_ms=32, merge_ms=0.25,
            total_ms=40, retrieve_start_ms=5, read_start_ms=7, merge_start_ms=39,
        ),
        passages_read=10,
        read_scope=answer_pb2.READ_SCOPE_GLOBAL,
        request_id="of-the-front",
        question_truncated=True,
        passages_asked=10,
        passages_granted=10,
        passages_needed=4,
        max_loss=0.3,
    )  # fmt: skip
    best = reply.answers.add(
        text=text[start : start + 10], start=start, end=start + 10, score=8.5, shard=0,
        relevance=3.5, span_score=5.0, distance=0.5, hybrid_distance=0.25, words=7.5, confidence=0.75,
    )  # fmt: skip
    best.passage.CopyFrom(answer_pb2.Passage(id="combining", title="Łódź", text=text))
    best.passage.metadata.update({"year": 1923, "tags": ["a", "b"]})
    best.sentence_start, best.sentence_end, best.sentence_confidence = 0, len(text), 0.875
    best.size, best.shown_text = answer_pb2.ANSWER_SIZE_SPAN, best.text
    best.source.MergeFrom(
        answer_pb2.Source(
            document="cafés.pdf", page=4, headings=["Cities", "Łódź"], start=120, end=170,
            url="https://example.org/cafés.pdf",
        )
    )  # fmt: skip
    other = reply.answers.add(text="Łódź", start=13, end=17, score=2.5, shard=0, confidence=0.06)
    other.passage.CopyFrom(answer_pb2.Passage(id="other", title="", text=text))
    reply.coverage.shards.add(shard=0, passages=7, status=answer_pb2.ShardCoverage.STATUS_SEARCHED)
    reply.coverage.shards.add(
        shard=1,
        passages=5,
        status=answer_pb2.ShardCoverage.STATUS_TIMEOUT,
        reason="no reply in 2 s",
    )
    reply.timings.shards.add(shard=0, queue_ms=0.125, retrieve_ms=1.5, read_ms=30)
    kinds = answer_pb2.ShardCall
    for shard, outcome in ((0, kinds.OUTCOME_ANSWERED), (1, kinds.OUTCOME_ABANDONED)):
        reply.timings.calls.add(
            shard=shard, kind=kinds.KIND_RETRIEVE, outcome=outcome, start_ms=5, ms=2 + 32 * shard,
            retrieve_start_ms=5.5, retrieve_ms=1.5 * (1 - shard),
        )  # fmt: skip
    read = reply.timings.calls.add(
        shard=0, kind=kinds.KIND_READ, outcome=kinds.OUTCOME_ANSWERED, start_ms=7, ms=32
    )
    read.reads.add(passage_id="other", start_ms=20, ms=18)
    read.reads.add(passage_id="combining", start_ms=8, ms=12)
    return reply
