"""Both clients for programs, against a front node over real gRPC."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol

import grpc
import pytest
from scripted_front import ScriptedFront, full_reply, scripted_front
from tenacious import LONG, growing

import winnow
from winnow.cli.local.ports import free_ports
from winnow.client import (
    AsyncClient,
    CallKind,
    CallOutcome,
    Client,
    Position,
    ReadTiming,
    Reply,
    ShardStatus,
)
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)


class Asks(Protocol):
    """What the tests use of either client, awaited."""

    def ask(self, question: str, **options: Any) -> Awaitable[Reply]: ...
    def available(self) -> Awaitable[bool]: ...
    def wait_ready(self, timeout: float) -> Awaitable[None]: ...


class InThread:
    """A `Client`, used in threads so that the event loop of the front node runs."""

    def __init__(self, address: str, **named: Any) -> None:
        self.client = Client(address, **named)

    async def ask(self, question: str, **options: Any) -> Reply:
        return await asyncio.to_thread(self.client.ask, question, **options)

    async def available(self) -> bool:
        return await asyncio.to_thread(self.client.available)

    async def wait_ready(self, timeout: float) -> None:
        await asyncio.to_thread(self.client.wait_ready, timeout)

    async def close(self) -> None:
        self.client.close()


@pytest.fixture
async def front() -> AsyncIterator[ScriptedFront]:
    async with scripted_front() as made:
        yield made


@pytest.fixture(params=[InThread, AsyncClient])
async def client(front: ScriptedFront, request: pytest.FixtureRequest) -> AsyncIterator[Asks]:
    made = request.param(front.address, client_name="tests")
    yield made
    await made.close()


async def test_a_reply_is_plain_values(front: ScriptedFront, client: Asks) -> None:
    front.reply = full_reply()
    reply = await client.ask("Who opened the café?")
    best = reply.answers[0]
    assert (reply.question, reply.answer) == ("Who opened the café?", best.text)
    assert best.text == best.passage.text[best.start : best.end] == "Zoe\u0308 Nowak"
    assert (best.shard, best.score, best.relevance, best.span_score) == (0, 8.5, 3.5, 5.0)
    assert (best.distance, best.hybrid_distance, best.words) == (0.5, 0.25, 7.5)
    assert best.passage.metadata == {"year": 1923, "tags": ["a", "b"]}
    assert reply.answers[1].passage.metadata == {}
    assert (reply.coverage.known, reply.coverage.searched, reply.coverage.failed) == (12, 7, 5)
    assert not reply.coverage.complete
    late = reply.coverage.shards[1]
    assert (late.status, late.reason) == (ShardStatus.TIMEOUT, "no reply in 2 s")
    assert reply.timings.total_ms == 40
    assert reply.timings.shards[0].read_ms == 30
    assert [(each.shard, each.kind, each.outcome) for each in reply.timings.calls] == [
        (0, CallKind.RETRIEVE, CallOutcome.ANSWERED),
        (1, CallKind.RETRIEVE, CallOutcome.ABANDONED),
        (0, CallKind.READ, CallOutcome.ANSWERED),
    ]
    assert reply.timings.calls[2].reads[1] == ReadTiming(passage_id="combining", start_ms=8, ms=12)
    assert (reply.request_id, reply.question_truncated) == ("of-the-front", True)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300])
async def test_who_waits_for_ever_gets_a_reply(
    front: ScriptedFront, client: Asks, timeout: float
) -> None:
    front.reply = full_reply()
    assert (await client.ask("?", timeout=timeout)).answer == "Zoe\u0308 Nowak"


async def test_a_timeout_that_is_no_number_is_refused(client: Asks) -> None:
    with pytest.raises(InvalidRequestError, match="timeout: nan"):
        await client.ask("?", timeout=float("nan"))


async def test_an_unlikely_answer_is_a_candidate_and_no_answer(
    front: ScriptedFront, client: Asks
) -> None:
    front.reply = full_reply()
    front.reply.has_answer = False
    reply = await client.ask("?")
    assert reply.answer is None
    assert len(reply.answers) == 2


async def test_options_become_the_fields_of_the_same_names(
    front: ScriptedFront, client: Asks
) -> None:
    await client.ask(
        "?", passages_to_read=5, answers=2, read_scope="per-shard", retriever="dense",
        max_answer_tokens=7, max_loss=0.5, partial_results="forbid", min_coverage=0.5,
        min_wait_factor=0.25, max_wait_factor=0.75, where="year > 1", request_id="mine",
        answer_size="sentence", min_confidence=0.5,
    )  # fmt: skip
    sent = front.requests[0]
    assert (sent.passages_to_read, sent.answers, sent.max_answer_tokens) == (5, 2, 7)
    assert (sent.read_scope, sent.retriever, sent.partial_results) == (2, 1, 2)
    assert (sent.max_loss, sent.min_coverage) == (0.5, 0.5)
    assert (sent.answer_size, sent.min_confidence) == (3, 0.5)
    assert (sent.min_wait_factor, sent.max_wait_factor) == (0.25, 0.75)
    assert sent.filter == "year > 1"
    assert front.metadata["x-request-id"] == "mine"
    assert front.metadata["x-winnow-client"] == "tests"


@pytest.mark.parametrize("after", [[Position(0, 7), Position(3, 1)], (Position(0, 7),)])
async def test_the_writes_that_an_answer_must_know_of_are_sent(
    after: Sequence[Position], front: ScriptedFront, client: Asks
) -> None:
    await client.ask("?", after=after)
    assert [(each.shard, each.sequence) for each in front.requests[0].after] == [
        (each.shard, each.sequence) for each in after
    ]


async def test_the_last_write_that_a_shard_knew_of_comes_back(
    front: ScriptedFront, client: Asks
) -> None:
    front.reply = full_reply()
    del front.reply.coverage.shards[:]
    for sequence in (7, 0, None):
        front.reply.coverage.shards.add(sequence=sequence)
    reply = await client.ask("?")
    assert [part.sequence for part in reply.coverage.shards] == [7, 0, None]
    assert [part["sequence"] for part in reply.as_dict()["coverage"]["shards"]] == [7, 0, None]


async def test_heads_of_a_question_travel_both_ways(front: ScriptedFront, client: Asks) -> None:
    front.reply = full_reply()
    front.reply.heads.add(head_id="intent", version=3).labels.add(
        label="ask", score=0.5, assigned=True
    )
    front.reply.heads.add(head_id="mood", failure="gone")
    intent, mood = (await client.ask("?", heads=["intent", "mood"])).heads
    assert list(front.requests[0].heads) == ["intent", "mood"]
    assert (intent.version, intent.label, mood.label, mood.failure) == (3, "ask", None, "gone")


async def test_what_is_not_said_is_left_to_the_front_node(
    front: ScriptedFront, client: Asks
) -> None:
    await client.ask("?", answers=None)
    assert [field.name for field, _ in front.requests[0].ListFields()] == ["question"]


async def test_a_refusal_names_the_fields(front: ScriptedFront, client: Asks) -> None:
    front.reply = InvalidRequestError(
        Violation("question", "is empty"), Violation("answers", "0 is not between 1 and 100")
    )
    with pytest.raises(InvalidRequestError, match="question: is empty; answers: 0 is") as caught:
        await client.ask(" ", request_id="mine")
    assert [each.field for each in caught.value.violations] == ["question", "answers"]
    assert caught.value.__notes__ == ["request id: mine"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("passages_to_read", -1, "-1"),
        ("passages_to_read", 1.5, "float"),
        ("read_scope", "everywhere", "everywhere"),
        ("question", "\udc80", "is not valid UTF-8 text"),
        ("question", 7, "must be a string"),
        ("heads", [7], "argument type"),
        ("after", [7], "'7' is not a winnow.client.Position"),
        ("after", [Position(-1, 7)], "-1"),
        ("after", 7, "not iterable"),
        ("request_id", "two words", "two words"),
    ],
)
async def test_what_no_message_can_hold_is_refused_by_its_name(
    name: str, value: Any, said: str, client: Asks
) -> None:
    options = {"question": "?", name: value}
    with pytest.raises(InvalidRequestError, match=said) as caught:
        await client.ask(**options)
    assert caught.value.violations[0].field == name


async def test_an_option_that_is_not_there_is_a_type_error_with_the_closest(client: Asks) -> None:
    with pytest.raises(TypeError, match="'filter': did you mean 'where'"):
        await client.ask("?", filter="year > 2000")
    with pytest.raises(TypeError, match="'passage_to_read': did you mean 'passages_to_read'"):
        await client.ask("?", passage_to_read=3)


def test_an_option_that_is_not_there_is_refused_by_type_checkers_too() -> None:
    """`make types` refuses a comment that is not needed."""
    with Client("127.0.0.1:1") as client, pytest.raises(TypeError, match="passages_to_read"):
        client.ask("?", passages="3")  # type: ignore[call-arg]


async def test_a_full_front_says_when_to_try_again(front: ScriptedFront, client: Asks) -> None:
    front.reply = OverloadedError("too much to do", retry_after=0.75)
    with pytest.raises(OverloadedError) as caught:
        await client.ask("?")
    assert str(caught.value) == "too much to do"
    assert caught.value.retry_after == 0.75


@pytest.mark.parametrize("error", [UnavailableError("no shard"), DeadlineExceededError("late")])
async def test_other_errors_keep_their_kind_and_words(
    error: WinnowError, front: ScriptedFront, client: Asks
) -> None:
    front.reply = error
    with pytest.raises(type(error)) as caught:
        await client.ask("?")
    assert str(caught.value) == str(error)


async def test_without_a_reply_in_time_the_question_is_given_up(
    front: ScriptedFront, client: Asks
) -> None:
    front.hangs = True
    for timeout in growing(2.0):
        with pytest.raises(DeadlineExceededError):
            await client.ask("?", timeout=timeout)
        if front.asked.is_set():
            break
    await front.cancelled.wait()


async def test_a_server_that_ends_during_a_call_is_not_said_to_be_missing(
    front: ScriptedFront, client: Asks
) -> None:
    front.hangs = True
    asking = asyncio.ensure_future(client.ask("?", timeout=LONG))
    await front.asked.wait()
    await front.server.grpc.stop(0)
    with pytest.raises(UnavailableError, match="the server ended during the call: send it again"):
        await asking


@pytest.mark.parametrize("kind", [InThread, AsyncClient])
async def test_an_address_where_nobody_listens_is_named(kind: Any) -> None:
    client = kind(f"127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(UnavailableError, match=f"cannot reach a front node at {address(client)}"):
        await client.ask("?")
    assert not await client.available()
    with pytest.raises(UnavailableError, match="served within 0 s"):
        await client.wait_ready(0.0)
    await client.close()


@pytest.mark.parametrize("kind", [InThread, AsyncClient])
async def test_the_port_of_a_node_is_said_not_to_be_that_of_a_front(kind: Any) -> None:
    node = grpc.aio.server()
    client = kind(f"127.0.0.1:{node.add_insecure_port('127.0.0.1:0')}")
    await node.start()
    with pytest.raises(NotServedError, match="it is not a front node, or the front lacks"):
        await client.ask("?")
    await client.close()
    await node.stop(None)


def address(client: Any) -> str:
    return str(client.client.address if isinstance(client, InThread) else client.address)


async def test_a_front_is_waited_for_until_it_serves(
    front: ScriptedFront, client: Asks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("aio", "client"):
        monkeypatch.setattr(f"winnow.client.{module}.CHECK_TIMEOUT", LONG)
    await front.server.set_serving(False)
    assert not await client.available()
    waiting = asyncio.ensure_future(client.wait_ready(LONG))
    await asyncio.sleep(0)
    await front.server.set_serving(True)
    await waiting
    assert await client.available()


async def test_threads_share_a_client_that_ends_with_its_block(front: ScriptedFront) -> None:
    with Client(front.address) as client:
        asked = [asyncio.to_thread(client.ask, f"{number}?") for number in range(8)]
        replies = await asyncio.gather(*asked)
    assert [reply.question for reply in replies] == [f"{number}?" for number in range(8)]
    with pytest.raises(ValueError, match="closed"):
        client.ask("?")


async def test_a_cancelled_question_ends_at_the_front(front: ScriptedFront) -> None:
    front.hangs = True
    async with AsyncClient(front.address) as client:
        asking = asyncio.create_task(client.ask("?"))
        await front.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await front.cancelled.wait()


ASKS_UNTIL_INTERRUPTED = """
import signal, sys
from winnow.client import Client
signal.signal(signal.SIGINT, signal.default_int_handler)
client = Client(sys.argv[1])
try:
    client.ask("?", timeout=300.0)
except KeyboardInterrupt:
    client.close()
    print("interrupted and closed")
"""


async def test_a_question_that_ctrl_c_interrupts_ends_at_the_front(front: ScriptedFront) -> None:
    front.hangs = True
    asking = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKS_UNTIL_INTERRUPTED, front.address, stdout=subprocess.PIPE
    )
    await front.asked.wait()
    asking.send_signal(signal.SIGINT)
    said, _ = await asking.communicate()
    await front.cancelled.wait()
    assert said == b"interrupted and closed\n"


async def test_ctrl_c_at_the_start_of_a_call_leaves_a_client_that_can_be_closed(
    front: ScriptedFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC serves calls that are started as futures by a thread, and its channels wait for it."""

    def interrupted(_state: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grpc._channel._run_channel_spin_thread", interrupted)
    client = Client(front.address)

    def ask_and_close() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            client.ask("?")
        client.close()

    closing = threading.Thread(target=ask_and_close, daemon=True)
    closing.start()
    await asyncio.to_thread(closing.join, LONG)
    assert not closing.is_alive()


@pytest.mark.parametrize("name", ["two words", "ü", "a" * 65])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_name_that_fronts_would_not_take_is_refused(kind: Any, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="client_name"):
        kind("127.0.0.1:1", client_name=name)


@pytest.mark.parametrize(
    "address", ["localhost", "127.0.0.1:99999", "http://127.0.0.1:8080", "", ":8080"]
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_is_no_address_is_refused_before_another_port_is_asked(
    kind: Any, address: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"address: '{address}' is neither HOST:PORT nor"):
        kind(address)


def test_the_clients_are_names_of_the_package_and_cost_nothing_until_used() -> None:
    assert (winnow.Client, winnow.AsyncClient) == (Client, AsyncClient)
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        winnow.Clint  # type: ignore[attr-defined]  # noqa: B018
    code = "import sys, winnow; print('grpc' in sys.modules, 'winnow.client' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]
