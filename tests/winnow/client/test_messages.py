"""A client of several front nodes, over real gRPC on free ports."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from listening import new_server
from scripted_front import scripted_front

from winnow.client.aio import CHECK_TIMEOUT
from winnow.client.channels import SERVICE, SERVICES
from winnow.client.messages import AnswerClient
from winnow.errors import UnavailableError
from winnow.rpc import client_key
from winnow.v1 import answer_pb2, answer_pb2_grpc

ENOUGH = 20


class Front(answer_pb2_grpc.AnswerServiceServicer):
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.server = new_server(SERVICE)
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(self, self.server.grpc)
        self.asked = 0

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        self.asked += 1
        return answer_pb2.AnswerResponse()


class Client:
    """Asks again and again."""

    def __init__(self, client: AnswerClient) -> None:
        self._client = client

    async def ask(self, times: int = 1) -> None:
        for _ in range(times):
            await self._client.ask(answer_pb2.AnswerRequest(question="?"), 10)

    async def ask_all(self, fronts: list[Front]) -> None:
        while not all(each.asked for each in fronts):
            await self.ask()


@pytest.fixture
async def fronts() -> AsyncIterator[list[Front]]:
    made = [Front(), Front()]
    yield made
    for each in made:
        await each.server.drain(0)


@pytest.fixture
async def client(fronts: list[Front]) -> AsyncIterator[Client]:
    ports = [await each.server.start("127.0.0.1:0") for each in fronts]
    for each in fronts:
        await each.server.set_serving(True)
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    async with AnswerClient(target) as opened:
        yield Client(opened)


async def test_a_client_with_a_name_sends_it_and_one_without_sends_none() -> None:
    request = answer_pb2.AnswerRequest(question="?")
    async with scripted_front() as front:
        for name, sent in (("polite", "polite"), ("", None)):
            async with AnswerClient(front.address, client_name=name) as client:
                await client.ask(request, 10)
            assert front.metadata.get(client_key.KEY) == sent


async def test_several_fronts_share_the_questions(fronts: list[Front], client: Client) -> None:
    await client.ask_all(fronts)
    await client.ask(ENOUGH)
    assert min(each.asked for each in fronts) >= ENOUGH // 2


async def test_a_front_that_leaves_is_asked_no_more_and_no_question_is_lost(
    fronts: list[Front], client: Client
) -> None:
    leaving, _ = fronts
    await client.ask_all(fronts)
    await leaving.server.set_serving(False)
    before = -1
    while leaving.asked != before:  # until the client has heard of it
        before = leaving.asked
        await client.ask(ENOUGH)
    await leaving.server.drain(0)
    await client.ask(ENOUGH)


async def test_without_any_front_a_question_fails(fronts: list[Front], client: Client) -> None:
    await client.ask_all(fronts)
    for each in fronts:
        await each.server.drain(0)
    with pytest.raises(UnavailableError):
        await client.ask()


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # it has no types
    """Knows one service. It reports SERVING only to a caller that waits `seconds` or longer."""

    def __init__(self, service: str, seconds: float = 0.0) -> None:
        self._service, self._seconds = service, seconds

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> Any:
        if request.service != self._service:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        if context.time_remaining() < self._seconds:
            await asyncio.Event().wait()
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


@contextlib.asynccontextmanager
async def served(health: Health) -> AsyncIterator[AnswerClient]:
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with AnswerClient(f"127.0.0.1:{port}") as client:
            yield client
    finally:
        await server.stop(None)


async def test_a_front_on_a_busy_machine_is_given_seconds_to_report_that_it_serves() -> None:
    async with served(Health(SERVICE, 2 * CHECK_TIMEOUT)) as client:
        assert not await client.available()
        await client.expect_serving()


async def test_a_server_that_only_reads_texts_answers_no_questions() -> None:
    async with served(Health(SERVICES[1])) as client:
        with pytest.raises(UnavailableError, match=f"no front node serves {SERVICE}"):
            await client.expect_serving()
