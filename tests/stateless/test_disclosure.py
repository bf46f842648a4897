"""What callers are told when nodes fail: no machine, file or checksum, unless they are admins.

Every kind of error of a node is made by a real call, and told by both interfaces.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import numpy as np
import pytest
from fed_front import FedFront
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from known_caller import called_by
from live_front import LiveFront
from logged_shards import LiveReplica, ShardLog, counted
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.convert import answer as convert
from winnow.convert import head as convert_head
from winnow.deadline import Deadline
from winnow.domain.encoder import StatesFormat
from winnow.domain.prediction import HeadPrediction
from winnow.domain.question import PartialResults
from winnow.domain.write import FedPassage, Write
from winnow.errors import LEAVING, NOT_LOADED, NOT_WRITABLE, UnavailableError, WinnowError
from winnow.heads.remote import RemoteHeads
from winnow.keys.key import Scope
from winnow.rpc.status import rich_status
from winnow.shard_service.remote import RemoteShardWriter
from winnow.stateless.feed.targets import choose_target
from winnow.stateless.http.problems import problem_of
from winnow.stateless.replicas.remote import RemoteNode
from winnow.text.remote import RemoteEncoder
from winnow.v1 import encoder_pb2_grpc

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
SAID = f"/data/index/shard-00000-of-00002/passages.sqlite has {DIGEST}; see 10.7.3.9:9001"
SECRET = re.compile(r"/data|sqlite|9f86d081|\d+\.\d+\.\d+\.\d+|node-\d|secret-host")
CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
FAULTS = [(code, "") for code in CODES] + [
    (grpc.StatusCode.UNAVAILABLE, NOT_LOADED),
    (grpc.StatusCode.UNAVAILABLE, LEAVING),
    (grpc.StatusCode.FAILED_PRECONDITION, NOT_WRITABLE),
]
ALL_FAULTS = pytest.mark.parametrize(
    "fault", FAULTS, ids=lambda fault: f"{fault[0].name}{fault[1]}"
)
ADDRESS = "secret-host:9001"
STRANGERS = [(), (Scope.ASK,), (Scope.FEED, Scope.ASK)]
"""Those without keys, where none are needed, and keys that are not for administrators."""
Fault = tuple[grpc.StatusCode, str]


class Failing(grpc.GenericRpcHandler):
    """A node whose calls all fail in one way, and say too much."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def service(self, _details: Any) -> Any:
        async def fail(_request: Any, context: Any) -> Any:
            code, reason = self._fault
            status = status_pb2.Status(code=code.value[0], message=SAID)
            if reason:
                status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason))
            await context.abort_with_status(rpc_status.to_status(status))

        return grpc.unary_unary_rpc_method_handler(fail)


@contextlib.asynccontextmanager
async def failing(fault: Fault) -> AsyncIterator[grpc.aio.Channel]:
    """What calls such a node."""
    server = grpc.aio.server(handlers=[Failing(fault)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


def told(error: WinnowError) -> str:
    """All that both interfaces tell the present caller of an error."""
    by_grpc = rich_status(error)
    return repr([by_grpc.details, by_grpc.trailing_metadata, str(problem_of(error))])


async def raised(call: Awaitable[object]) -> WinnowError:
    with pytest.raises(WinnowError) as caught:
        await call
    return caught.value


def expect_told_to_admins_only(tell: Callable[[], str], details: str = "9f86d081") -> None:
    for scopes in STRANGERS:
        with called_by(*scopes):
            assert not SECRET.search(tell()), scopes
    with called_by(Scope.ASK, Scope.ADMIN):
        assert details in tell()


def front_of_two() -> LiveFront:
    index = counted({"a": (1,), "b": (2,)})
    return LiveFront(
        LiveReplica("10.7.3.9:9001", ShardLog({"a": (1,)}, "one"), 0, 2, index),
        LiveReplica("10.7.3.10:9001", ShardLog({"b": (2,)}, "two"), 1, 2, index),
    )


async def ask(front: LiveFront, **options: Any) -> Callable[[], str]:
    """What asking once tells a caller, who is known only when it is told."""
    try:
        answered = await front.ask("Who?", fresh=True, **options)
    except WinnowError as failed:
        error = failed
        return lambda: told(error)
    return lambda: str(convert.answered_to_message(answered, ""))


@ALL_FAULTS
async def test_an_asker_is_not_told_what_a_node_says_when_its_shard_fails(fault: Fault) -> None:
    front = front_of_two()
    async with failing(fault) as channel:
        error = await raised(RemoteNode(channel, ADDRESS).searcher(None).info(Deadline.after(LONG)))
    first, second = front.replicas.values()
    for dead in ([first], [first, second]):
        for each in dead:
            each.fails = error
        for partial in PartialResults:
            tell = await ask(front, partial_results=partial)
            expect_told_to_admins_only(tell)


async def test_an_asker_is_not_told_which_nodes_are_gone() -> None:
    front = front_of_two()
    front.kill("10.7.3.9:9001")
    for _ in range(3):
        front.look()
        tell = await ask(front)
        assert "STATUS_UNAVAILABLE" in tell()
        expect_told_to_admins_only(tell, "10.7.3.9:9001")


async def test_the_log_says_why_shards_failed_though_the_asker_is_answered() -> None:
    front = front_of_two()
    front.kill("10.7.3.9:9001")
    with capture_logs() as logged:
        await ask(front)
    (line,) = [each for each in logged if each["event"] == "shards failed"]
    assert line["count"] == 1
    assert "10.7.3.9:9001: connection refused" in line["shards"]["0"]


@ALL_FAULTS
async def test_a_feeder_is_not_told_what_a_node_says(fault: Fault, bundle: Bundle) -> None:
    front = FedFront(bundle)
    async with failing(fault) as channel:
        writer = RemoteShardWriter(
            channel=channel, address=ADDRESS, index_id="index", shard=0, fingerprint=DIGEST
        )
        failed = await raised(writer.write([Write("a", 1)], Deadline.after(LONG)))
    for shard in front.shards:
        shard.fails = failed
    passages = [FedPassage(id=f"p{number}", title="", text="A river.") for number in range(4)]
    error = await raised(front.core.put(passages, Deadline.after(0.5, front.clock)))
    front.close()
    for scopes in STRANGERS:
        with called_by(*scopes):
            assert not SECRET.search(told(error))
    assert re.search("9f86d081|secret-host", str(error)), "the log has it"


def test_a_feeder_is_not_told_which_replicas_share_no_log() -> None:
    with pytest.raises(WinnowError) as caught:
        choose_target(0, ["10.7.3.9:9001", "10.7.3.10:9001"], {})
    expect_told_to_admins_only(lambda: told(caught.value), "10.7.3.10:9001")


@ALL_FAULTS
async def test_nobody_is_told_what_an_encoder_or_a_head_server_says(fault: Fault) -> None:
    async with failing(fault) as channel:
        encoder = RemoteEncoder("127.0.0.1:1", DIGEST, StatesFormat.FLOAT16)
        encoder._stub = encoder_pb2_grpc.EncoderServiceStub(channel)
        error = await raised(encoder.encode([1, 2], "", Deadline.after(LONG)))
        states = np.zeros((2, 2), np.float16)
        heads = RemoteHeads(channel, ADDRESS, DIGEST)
        await encoder.close()
        failure = await raised(heads.call(states, ["intent"], Deadline.after(LONG)))
    prediction = HeadPrediction(head_id="intent", failure=failure)
    for scopes in STRANGERS:
        with called_by(*scopes):
            assert not SECRET.search(told(error))
            assert not SECRET.search(str(convert_head.head_to_message(prediction)))


def test_what_names_nothing_is_told_as_it_is() -> None:
    assert "try again later" in told(UnavailableError("try again later"))
