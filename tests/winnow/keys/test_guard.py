"""Keys at the edge of gRPC, over real calls."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextvars import copy_context
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs
from tenacious import LONG, happens

from winnow import caller
from winnow.errors import PermissionDeniedError, UnauthenticatedError
from winnow.keys.gate import Gate
from winnow.keys.key import Key, Scope
from winnow.keys.metrics import KeyMetrics
from winnow.keys.token import digest_of, new_token
from winnow.policy.rates import Rate
from winnow.rpc import client_key
from winnow.rpc.client_key import client_of
from winnow.rpc.guard import KeyGuard
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.status import error_of
from winnow.security.from_settings import ServerSecurity
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import answer_pb2, answer_pb2_grpc, feed_pb2, feed_pb2_grpc

ASK, FEED = "winnow.v1.AnswerService", "winnow.v1.FeedService"
_MOST = 50
"""Calls in hand of one key."""
TOKEN = new_token()
KEY = Key(name="alice", digest=digest_of(TOKEN), scopes=frozenset({Scope.ASK, Scope.FEED}))


class Answers(answer_pb2_grpc.AnswerServiceServicer):
    """Says who asks."""

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        client = client_of(context)
        if request.heads:
            caller.require_scope("predict")
        return answer_pb2.AnswerResponse(request_id=f"{client}: {request.question}")


class Feeds(feed_pb2_grpc.FeedServiceServicer):
    """Counts messages."""

    def __init__(self) -> None:
        self.messages = 0

    async def Put(self, request: feed_pb2.PutRequest, context: Any) -> Any:
        return feed_pb2.PutResponse()

    async def Delete(self, request: feed_pb2.DeleteRequest, context: Any) -> Any:
        return feed_pb2.DeleteResponse()

    async def DeleteWhere(self, request: feed_pb2.DeleteWhereRequest, context: Any) -> Any:
        return feed_pb2.DeleteWhereResponse()

    async def DeleteTenant(self, request: feed_pb2.DeleteTenantRequest, context: Any) -> Any:
        return feed_pb2.DeleteTenantResponse()

    async def DeleteStream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        return await self.PutStream(requests, context)

    async def PutStream(self, requests: AsyncIterator[Any], context: Any) -> Any:
        async for _ in requests:
            self.messages += 1
        return feed_pb2.FeedSummary(stored=self.messages)


class Front:
    """A server with one gate."""

    def __init__(self) -> None:
        self.feeds, self.registry = Feeds(), CollectorRegistry()
        self.gate = Gate([KEY], on_refusal=KeyMetrics(self.registry).count_refusal)
        self.server = Server(
            services=[ASK, FEED],
            interceptor=CallInterceptor(RpcMetrics(self.registry)),
            reject=KeyGuard(self.gate, lambda _method, _metadata: None),
            security=ServerSecurity(peer_calls=_MOST),
        )
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(Answers(), self.server.grpc)
        feed_pb2_grpc.add_FeedServiceServicer_to_server(self.feeds, self.server.grpc)

    def refusals(self, reason: str, scope: str = "ask") -> float | None:
        labels = {"scope": scope, "reason": reason}
        return self.registry.get_sample_value("winnow_front_key_refusals_total", labels)


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    made = Front()
    yield made
    await made.server.drain(0)


@pytest.fixture
async def channel(front: Front) -> AsyncIterator[grpc.aio.Channel]:
    port = await front.server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


def sent(token: str = TOKEN, **more: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"), *more.items())


async def ask(channel: grpc.aio.Channel, metadata: Any = ()) -> str:
    stub = answer_pb2_grpc.AnswerServiceStub(channel)
    request = answer_pb2.AnswerRequest(question="who?")
    return str((await stub.Answer(request, timeout=LONG, metadata=metadata)).request_id)


def put_stream(channel: grpc.aio.Channel, metadata: Any) -> Any:
    return feed_pb2_grpc.FeedServiceStub(channel).PutStream(timeout=LONG, metadata=metadata)


async def test_the_caller_is_the_one_whose_key_it_is(channel: grpc.aio.Channel) -> None:
    """The name that the caller sends does not matter."""
    said = await ask(channel, (*sent(), (client_key.KEY, "mallory")))
    assert said == "alice: who?"


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        sent("wrong"),
        sent(TOKEN.upper()),
        (("authorization", TOKEN),),
        (("authorization-bin", f"Bearer {TOKEN}".encode()),),
        (("authorization", ""), *sent()),
    ],
)
async def test_a_caller_without_a_good_key_is_unauthenticated(
    channel: grpc.aio.Channel, metadata: Any, logged: list[Any], front: Front
) -> None:
    """And reads his token in no error, no log line and no metric."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, metadata)
    error = caught.value
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    told = str(error) + json.dumps(logged) + generate_latest(front.registry).decode()
    assert TOKEN not in told
    assert digest_of(TOKEN) not in told
    raised = error_of(error.code(), str(error.details()), error.trailing_metadata())
    assert type(raised) is UnauthenticatedError
    assert front.refusals("unauthenticated") == 1


async def test_a_caller_without_the_scope_is_told_its_name(
    channel: grpc.aio.Channel, front: Front
) -> None:
    front.gate.update(
        [Key(name="alice", digest=KEY.digest, scopes=frozenset({Scope.FEED, Scope.ADMIN}))]
    )
    with pytest.raises(grpc.aio.AioRpcError, match="lacks the scope 'ask'") as caught:
        await ask(channel, sent())
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert type(error_of(caught.value.code(), "")) is PermissionDeniedError
    assert front.refusals("permission_denied") == 1


@pytest.mark.parametrize(
    ("method", "scope"),
    [
        ("winnow.v1.PassageService/SearchPassages", Scope.ASK),
        ("winnow.v1.PassageService/ExportPassages", Scope.ASK),
        ("winnow.v1.ReadService/ReadTexts", Scope.READ),
        ("winnow.v1.ReadService/StreamReadings", Scope.READ),
        ("winnow.v1.FeedService/DeleteWhere", Scope.FEED),
        ("winnow.v1.ShardPassageService/ListShardPassages", Scope.ADMIN),
    ],
)
def test_a_call_needs_the_scope_of_its_service_and_no_other(method: str, scope: Scope) -> None:
    for held in Scope:
        gate = Gate([Key(name="alice", digest=KEY.digest, scopes=frozenset({held}))])
        guard = KeyGuard(gate, lambda _method, _metadata: None)
        refusal = copy_context().run(guard, f"/{method}", sent())  # it binds the caller
        assert (refusal is None) == (held is scope)


async def test_a_call_may_need_a_further_scope(channel: grpc.aio.Channel, front: Front) -> None:
    request = answer_pb2.AnswerRequest(question="who?", heads=["intent"])
    answer = answer_pb2_grpc.AnswerServiceStub(channel).Answer
    with pytest.raises(grpc.aio.AioRpcError, match="lacks the scope 'predict'") as caught:
        await answer(request, timeout=LONG, metadata=sent())
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert front.refusals("permission_denied", "predict") == 1
    front.gate.update(
        [Key(name="alice", digest=KEY.digest, scopes=frozenset({Scope.ASK, Scope.PREDICT}))]
    )
    assert await answer(request, timeout=LONG, metadata=sent())


async def test_a_caller_above_its_rate_is_told_when_to_retry(
    channel: grpc.aio.Channel, front: Front
) -> None:
    front.gate.update(
        [Key(name="alice", digest=KEY.digest, scopes=KEY.scopes, rate=Rate(0.001, 1))]
    )
    await ask(channel, sent())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, sent())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    status = status_pb2.Status.FromString(
        dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    )
    info = error_details_pb2.RetryInfo()
    assert any(packed.Unpack(info) for packed in status.details)
    assert 900 < info.retry_delay.seconds <= 1_000
    assert front.refusals("rate") == 1


async def test_a_call_is_refused_before_its_message_arrives(channel: grpc.aio.Channel) -> None:
    half: Any = channel.stream_unary(f"/{ASK}/Answer", request_serializer=bytes)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await half(timeout=LONG)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_health_and_reflection_need_no_key(channel: grpc.aio.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    reply = await health.Check(health_pb2.HealthCheckRequest(service=ASK), timeout=LONG)
    assert reply.status == health_pb2.HealthCheckResponse.NOT_SERVING
    every = reflection_pb2.ServerReflectionRequest(list_services="*")
    looking = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([every]))
    assert [len(each.list_services_response.service) async for each in looking] == [4]


async def test_a_stream_ends_when_its_key_is_revoked(
    channel: grpc.aio.Channel, front: Front
) -> None:
    """Also one that is idle; and those of others go on."""
    other = new_token()
    both = [KEY, Key(name="bob", digest=digest_of(other), scopes=KEY.scopes)]
    front.gate.update(both)
    alices, bobs = put_stream(channel, sent()), put_stream(channel, sent(other))
    for stream in (alices, bobs):
        await stream.write(feed_pb2.PutRequest())
    await happens(lambda: front.feeds.messages == 2)
    front.gate.update(both[1:])
    with pytest.raises(grpc.aio.AioRpcError, match="alice was revoked") as caught:
        await alices
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    await bobs.write(feed_pb2.PutRequest())
    await bobs.done_writing()
    assert (await bobs).stored == 3


async def test_messages_of_a_stream_wait_for_the_rate(
    channel: grpc.aio.Channel, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.rpc.bounded_receive._MAX_PAUSE", 0.01)
    front.gate.update(
        [Key(name="alice", digest=KEY.digest, scopes=KEY.scopes, rate=Rate(0.001, 3))]
    )
    stream = put_stream(channel, sent())
    for _ in range(5):
        await stream.write(feed_pb2.PutRequest())
    await stream.done_writing()
    await happens(lambda: front.feeds.messages == 2)
    front.gate.update(
        [Key(name="alice", digest=KEY.digest, scopes=KEY.scopes, rate=Rate(1_000, 1_000))]
    )
    assert (await stream).stored == 5


async def test_calls_of_one_connection_keep_their_callers(
    channel: grpc.aio.Channel, front: Front
) -> None:
    tokens = {f"client-{number}": new_token() for number in range(20)}
    front.gate.update(
        Key(name=name, digest=digest_of(token), scopes=frozenset({Scope.ASK}))
        for name, token in tokens.items()
    )
    said = await asyncio.gather(*(ask(channel, sent(token)) for token in tokens.values()))
    assert said == [f"{name}: who?" for name in tokens]


async def test_many_callers_without_a_key_take_nothing_of_a_key_at_their_address(
    channel: grpc.aio.Channel,
) -> None:
    watch = health_pb2_grpc.HealthStub(channel).Watch
    watches = [watch(health_pb2.HealthCheckRequest(), timeout=LONG) for _ in range(_MOST)]
    await asyncio.gather(*(each.read() for each in watches), return_exceptions=True)
    streams = [put_stream(channel, ()) for _ in range(_MOST)]
    await happens(lambda: all(each.done() for each in streams))
    assert {await each.code() for each in streams} == {grpc.StatusCode.UNAUTHENTICATED}
    assert await ask(channel, sent()) == "alice: who?"
    for each in watches:
        each.cancel()


async def test_a_key_with_too_many_calls_takes_nothing_of_other_keys_at_its_address(
    channel: grpc.aio.Channel, front: Front
) -> None:
    other = new_token()
    front.gate.update([KEY, Key(name="bob", digest=digest_of(other), scopes=KEY.scopes)])
    streams = [put_stream(channel, sent()) for _ in range(_MOST + 1)]
    await happens(lambda: any(each.done() for each in streams))
    with pytest.raises(grpc.aio.AioRpcError, match="50 calls with your key") as caught:
        await ask(channel, sent())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await ask(channel, sent(other)) == "bob: who?"
    for each in streams:
        each.cancel()
