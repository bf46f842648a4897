"""What a head node says to what it is sent, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence

import grpc
import numpy as np
import pytest
from head_server import ENCODER, ServedHeads, serving
from manual_clock import ManualClock
from tenacious import LONG, happens

from winnow.convert.head_node import request_to_message
from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, TokenPrediction, TokenSpan
from winnow.errors import ArtefactError
from winnow.heads.heads import States
from winnow.rpc import client_key
from winnow.rpc.channel import open_channel
from winnow.v1 import head_node_pb2, head_node_pb2_grpc

STATES = np.ones((4, 3), np.float16)


class Fake:
    """Heads that find the first token, when they are told to; "broken" never does."""

    def __init__(self) -> None:
        self.go_on, self.begun, self.given_up = (asyncio.Event() for _ in range(3))
        self.go_on.set()
        self.left: list[float] = []
        self.clients: list[str] = []

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        self.left.append(deadline.left())
        self.clients.append(client)
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        span = TokenSpan("x", 0, len(states) - 2, 0.5)
        return [
            Applied(head=head, version=0, failure=ArtefactError("damaged"))
            if head == "broken"
            else Applied(head=head, version=7, prediction=TokenPrediction((span,)))
            for head in head_ids
        ]


@pytest.fixture
def heads() -> Fake:
    return Fake()


@pytest.fixture
async def server(heads: Fake) -> AsyncIterator[ServedHeads]:
    async with serving(heads, most=4) as made:
        yield made


@pytest.fixture
async def stub(
    server: ServedHeads,
) -> "AsyncIterator[head_node_pb2_grpc.HeadNodeServiceAsyncStub]":
    async with open_channel(server.address) as channel:
        yield head_node_pb2_grpc.HeadNodeServiceStub(channel)


def asking(*heads: str, fingerprint: str = ENCODER.fingerprint) -> head_node_pb2.ApplyRequest:
    return request_to_message(STATES, heads, fingerprint)


async def test_each_head_has_a_result_or_a_reason(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub", heads: Fake
) -> None:
    reply = await stub.Apply(
        asking("a", "broken", "b"), timeout=LONG, metadata=client_key.outgoing_metadata("tenant")
    )
    assert [each.head_id for each in reply.heads] == ["a", "broken", "b"]
    assert [each.version for each in reply.heads] == [7, 0, 7]
    assert reply.heads[1].failure.message == "damaged"
    assert reply.heads[0].spans[0].last == 2
    assert heads.clients == ["tenant"]


@pytest.mark.parametrize(("left", "reserve"), [(50.0, 0.02), (0.1, 0.01), (-1.0, 0.0)])
async def test_heads_leave_time_for_the_way_back(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub",
    heads: Fake,
    monkeypatch: pytest.MonkeyPatch,
    left: float,
    reserve: float,
) -> None:
    """Or one late head would lose what all others said."""
    deadline = Deadline.after(left, ManualClock())
    monkeypatch.setattr("winnow.head_node.servicer.deadline_of", lambda *_: deadline)
    await stub.Apply(asking("a"), timeout=LONG)
    assert heads.left == [pytest.approx(left - reserve)]


INVALID, PRECONDITION = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("request_", "code", "said"),
    [
        (asking(), INVALID, "head_ids: 0 heads; name 1 to 32"),
        (asking(*map(str, range(33))), INVALID, "head_ids: 33 heads"),
        (asking("a", "a"), INVALID, "a head is named twice"),
        (asking("../etc"), INVALID, "is not a head id"),
        (asking("x" * 9_000), INVALID, "is not a head id"),
        (asking("a", fingerprint="other"), PRECONDITION, "the token states are of encoder"),
        (asking("a", fingerprint="y" * 9_000), PRECONDITION, "the token states are of encoder"),
        (
            head_node_pb2.ApplyRequest(encoder_fingerprint=ENCODER.fingerprint, head_ids=["a"]),
            INVALID,
            "states.format",
        ),
    ],
)
async def test_an_invalid_request_is_refused_with_a_reason(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub",
    request_: head_node_pb2.ApplyRequest,
    code: grpc.StatusCode,
    said: str,
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Apply(request_, timeout=LONG)
    assert caught.value.code() is code
    assert said in str(caught.value.details())
    assert len(str(caught.value.details())) < 1_000


async def test_a_message_beyond_its_limit_is_refused(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub",
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Apply(
            request_to_message(np.ones((2_000, 300), np.float16), ["a"], "x"), timeout=LONG
        )
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in str(caught.value.details())


async def test_a_burst_of_a_hundred_texts_is_taken_in_whole(heads: Fake) -> None:
    """Their messages are large, and none of them gives way to another on its way."""
    encoder = ENCODER.model_copy(update={"width": 768})
    states = np.ones((254, 768), np.float16)
    async with serving(heads, encoder) as server, open_channel(server.address) as channel:
        stub = head_node_pb2_grpc.HeadNodeServiceStub(channel)
        request = request_to_message(states, ["a"], encoder.fingerprint)
        replies = await asyncio.gather(
            *(_reply(stub.Apply(request, timeout=LONG)) for _ in range(100))
        )
    assert all(reply.heads[0].version == 7 for reply in replies)


async def test_a_caller_that_gives_up_ends_the_work(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub", heads: Fake, server: ServedHeads
) -> None:
    heads.go_on.clear()
    call = asyncio.ensure_future(_reply(stub.Apply(asking("a"), timeout=LONG)))
    await asyncio.wait_for(heads.begun.wait(), LONG)
    assert server.in_hand() == 1
    call.cancel()
    await asyncio.wait_for(heads.given_up.wait(), LONG)
    await happens(lambda: server.in_hand() == 0)


async def test_too_many_texts_are_refused_with_a_time_to_come_back(
    stub: "head_node_pb2_grpc.HeadNodeServiceAsyncStub", heads: Fake, server: ServedHeads
) -> None:
    heads.go_on.clear()
    first = [asyncio.ensure_future(_reply(stub.Apply(asking("a"), timeout=LONG))) for _ in range(4)]
    await happens(lambda: server.in_hand() == 4)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Apply(asking("a"), timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert b"RetryInfo" in dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    heads.go_on.set()
    await asyncio.gather(*first)
    assert server.in_hand() == 0
    assert server.registry.get_sample_value("winnow_head_node_refusals_total") == 1


async def test_before_it_has_its_heads_it_is_unavailable(heads: Fake) -> None:
    server = ServedHeads(heads)
    async with open_channel(await server.start(serving=False)) as channel:
        stub = head_node_pb2_grpc.HeadNodeServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Apply(asking("a"), timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await server.server.drain(0)


async def _reply(call: Awaitable[head_node_pb2.ApplyResponse]) -> head_node_pb2.ApplyResponse:
    return await call
