"""Parts of the HTTP interface by themselves."""

import asyncio
import codecs
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import h11
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock
from tenacious import LONG, happens

from winnow.deadline import Deadline
from winnow.errors import (
    DeadlineExceededError,
    Fault,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    NotFoundError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
    WinnowError,
    invalid_field,
)
from winnow.rpc.status import _CODE_BY_ERROR
from winnow.stateless.composing.access import open_gate
from winnow.stateless.http.answers import answer_operations
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.endpoint import Endpoint, EndpointContext
from winnow.stateless.http.headers import before_deadline
from winnow.stateless.http.hosts import host_check
from winnow.stateless.http.json_fields import json_names_in_errors
from winnow.stateless.http.json_text import JsonText, message_to_json, parse_message
from winnow.stateless.http.parsing import RationedConnection
from winnow.stateless.http.probes import Readiness
from winnow.stateless.http.problems import HttpRefusedError, LateBodyError, problem_of, status_of
from winnow.v1 import answer_pb2, cluster_pb2, feed_pb2, head_pb2, http_pb2, read_pb2

FIELDS = ("question", "answers", "maxLoss", "after", "requests", "passages", "metadata", "id")
NAMES = st.sampled_from(FIELDS) | st.text(max_size=8)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequestError(), 400),
        (NotWritableError("no"), 400),
        (IdentityError("no"), 400),
        (NotFoundError("no"), 404),
        (LateBodyError("no"), 408),
        (GenerationGoneError("no"), 409),
        (HttpRefusedError(413, "request", "no"), 413),  # type: ignore[arg-type]
        (OverloadedError("no"), 429),
        (WinnowError("no"), 500),
        (UnavailableError("no"), 503),
        (DeadlineExceededError("no"), 504),
    ],
)
def test_every_error_has_a_status(error: WinnowError, status: int) -> None:
    assert status_of(error) == status


def test_no_error_that_grpc_tells_is_without_a_status() -> None:
    for kind, _ in _CODE_BY_ERROR:
        assert status_of(kind.__new__(kind)) >= 400


def test_a_problem_names_the_parts_that_failed() -> None:
    error = UnavailableError("shard 1 is gone", [Fault("SHARD_UNAVAILABLE", {"shard": "1"})])
    problem = problem_of(error, "mine")
    assert (problem.title, problem.code, problem.request_id) == (
        "Service Unavailable",
        "UNAVAILABLE",
        "mine",
    )
    assert problem.faults[0].metadata["shard"] == "1"
    assert not problem.HasField("retry_after_seconds")


def test_a_name_of_a_file_that_is_no_text_can_be_told() -> None:
    assert problem_of(UnavailableError("cannot open \udcff.npy")).detail


def test_a_message_is_the_same_after_a_journey() -> None:
    request = answer_pb2.AnswerRequest(
        question="Wer? — 🎻",
        retriever=answer_pb2.RETRIEVER_SPARSE,
        max_loss=0.0,
        after=[answer_pb2.Position(shard=0, sequence=2**53 + 1)],
    )
    assert parse_message(answer_pb2.AnswerRequest, message_to_json(request)) == request


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.binary() | st.dictionaries(NAMES, JSON, max_size=4).map(lambda v: json.dumps(v).encode()))
@settings(max_examples=80)
def test_whatever_is_sent_is_a_message_or_named_as_wrong(data: bytes) -> None:
    for kind in (answer_pb2.AnswerRequest, http_pb2.AnswersRequest, feed_pb2.PutRequest):
        try:
            parse_message(kind, data)
        except InvalidRequestError as error:
            (violation,) = error.violations
            assert violation.field
            assert len(violation.description) < 300


@pytest.mark.parametrize("words", [' has no field named "', "Failed to parse a field: "])
def test_words_of_an_error_that_a_request_repeats_take_no_long_time(words: str) -> None:
    """Nothing else runs while a pattern is looked for: half a megabyte took a minute."""
    data = json.dumps({"requests": [{"readScope": words * 10_000}]}).encode()
    began = time.process_time()
    with pytest.raises(InvalidRequestError) as caught:
        parse_message(http_pb2.AnswersRequest, data)
    assert time.process_time() - began < 1.0
    assert caught.value.violations[0].field == "requests.readScope"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("wheel", "requests.after.wheel"),
        ('a" quoted one', 'requests.after.a" quoted one'),
        ("a" * 500, f"requests.after.{'a' * 100}… (500 characters)"),
        ("", "requests.after"),
    ],
)
def test_a_field_that_is_not_known_is_named_wherever_it_is(name: str, field: str) -> None:
    data = json.dumps({"requests": [{"after": [{name: 1}]}]}).encode()
    with pytest.raises(InvalidRequestError) as caught:
        parse_message(http_pb2.AnswersRequest, data)
    (violation,) = caught.value.violations
    assert violation.field == field
    assert violation.description.endswith("its fields are shard, sequence, index")


@pytest.mark.parametrize("value", [' has no field named "' * 100, '" has no field named "x" at '])
def test_a_value_that_looks_like_an_error_of_the_parser_is_refused(value: str) -> None:
    """Found by random requests: the parser quotes the value in its own error."""
    data = json.dumps({"query": "Who?", "documents": value}).encode()
    with pytest.raises(InvalidRequestError):
        parse_message(http_pb2.RerankRequest, data)


def test_a_message_of_many_fields_refers_to_the_description() -> None:
    with pytest.raises(InvalidRequestError, match=r"not a field of .*: see /openapi\.json"):
        parse_message(http_pb2.AnswersRequest, b'{"requests": [{"wheel": 1}]}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"requests": [' + "{}," * 20_001 + "{}]}", "has more than 20000 objects"),
        ('{"requests": [{"question": "' + "{}" * 30_000 + '"}]}', ""),
        ('{"requests": [], "requests": []}', "has 'requests' twice"),
        ('{"requests": [{}]', "cannot be read as JSON: Expecting"),
        ('{"requests": [{"question": "\xff"}]}', "is not UTF-8"),
        ('{"requests": ' + "[" * 100_000, "cannot be read as JSON: maximum recursion"),
        ('{"requests": [{"answers": ' + "9" * 5_000 + "}]}", "cannot be read as JSON: Exceeds"),
    ],
)
def test_what_cannot_be_read_is_told_before_messages_are_made_of_it(text: str, words: str) -> None:
    data = text.encode("latin-1")
    if not words:
        assert parse_message(http_pb2.AnswersRequest, data).requests
        return
    with pytest.raises(InvalidRequestError) as caught:
        parse_message(http_pb2.AnswersRequest, data)
    (violation,) = caught.value.violations
    assert violation.field == "request"
    assert violation.description.startswith(words)


class Aside:
    """Counts what is done in it."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, _client: str, work: Callable[[], Any]) -> Any:
        self.runs += 1
        return work()


@pytest.mark.parametrize(
    ("request_text", "aside"),
    [
        ({"requests": [{"question": "Who won?", "answers": 2}]}, 0),
        ({"requests": [{"question": "Who won? " * 1_000}]}, 1),
        ({"requests": [{}] * 2_000}, 1),
    ],
)
async def test_what_is_long_or_in_many_parts_is_read_and_written_aside(
    request_text: object, aside: int
) -> None:
    """Questions would wait for it: 8 KB of empty messages take 15 ms."""
    threads = Aside()
    text = JsonText(threads)  # type: ignore[arg-type]
    data = json.dumps(request_text, separators=(",", ":")).encode()
    message = await text.parse(http_pb2.AnswersRequest, data, "")
    assert threads.runs == aside
    await text.to_json(message, "")
    assert threads.runs == 2 * aside


class Stuck:
    """Has no turn for anybody until it is let go."""

    def __init__(self) -> None:
        self.go_on, self.waiting = asyncio.Event(), 0

    async def run(self, _client: str, work: Callable[[], Any]) -> Any:
        self.waiting += 1
        try:
            await self.go_on.wait()
        finally:
            self.waiting -= 1
        return work()


async def test_only_so_much_waits_to_be_read() -> None:
    stuck = Stuck()
    text = JsonText(stuck)  # type: ignore[arg-type]
    data = b'{"question": "' + b"?" * (1 << 20) + b'"}'
    reading = [
        asyncio.create_task(text.parse(answer_pb2.AnswerRequest, data, "")) for _ in range(80)
    ]
    await happens(lambda: sum(task.done() for task in reading) == 80 - 63)
    refused = [task.exception() for task in reading if task.done()]
    assert {type(error) for error in refused} == {OverloadedError}
    stuck.go_on.set()
    await asyncio.wait(reading)
    assert (await text.parse(answer_pb2.AnswerRequest, data, "")).question


def _asking_stuck(
    stuck: Stuck, headers: list[tuple[bytes, bytes]], gone: asyncio.Event
) -> tuple[asyncio.Task[None], list[str], list[int]]:
    """A long request while others are read; the names and statuses of what ended."""
    ended, statuses, sent = list[str](), list[int](), False
    core: Any = None

    def finished(_method: str, code: str, _seconds: float, _fault: object) -> None:
        ended.append(code)

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await gone.wait()
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": b'{"question": "' + b"?" * 9_000 + b'"}'}

    async def send(event: Any) -> None:
        if event["type"] == "http.response.start":
            statuses.append(event["status"])

    readiness = Readiness()
    readiness.set_ready(True)
    edge = EndpointContext(
        gate=open_gate,
        record_call=finished,
        json=JsonText(stuck),  # type: ignore[arg-type]
        readiness=readiness,
    )
    endpoint = Endpoint(answer_operations(core, OperationLimits(60.0), lambda *_: None)[0], edge)
    kind = (b"content-type", b"application/json")
    scope = {"type": "http", "method": "POST", "headers": [kind, *headers], "query_string": b""}
    task = asyncio.create_task(endpoint(scope, receive, send))
    return task, ended, statuses


async def test_who_goes_while_its_request_waits_to_be_read_is_forgotten() -> None:
    stuck, gone = Stuck(), asyncio.Event()
    task, ended, _ = _asking_stuck(stuck, [], gone)
    await happens(lambda: stuck.waiting == 1)
    gone.set()
    await asyncio.wait_for(task, LONG)
    assert (stuck.waiting, ended) == (0, ["CANCELLED"])


async def test_the_time_of_a_request_counts_while_it_waits_to_be_read() -> None:
    stuck = Stuck()
    task, ended, statuses = _asking_stuck(stuck, [(b"x-winnow-timeout", b"0.01")], asyncio.Event())
    await asyncio.wait_for(task, LONG)
    assert (stuck.waiting, ended, statuses) == (0, ["DEADLINE_EXCEEDED"], [504])


@pytest.mark.parametrize(
    ("listen", "named", "host", "ours"),
    [
        ("127.0.0.1", [], "127.0.0.1:8088", True),
        ("127.0.0.1", [], "localhost", True),
        ("127.0.0.1", [], "LOCALHOST.:8088", True),
        ("127.0.0.1", [], "[::1]:8088", True),
        ("::1", [], "[::1]", True),
        ("localhost", [], "evil.example", False),
        ("127.0.0.1", [], "evil.example:8088", False),
        ("127.0.0.1", [], "", True),
        ("127.0.0.1", ["qa.example"], "qa.example:80", True),
        ("0.0.0.0", [], "evil.example:8088", False),
        ("0.0.0.0", [], "localhost:8088", True),
        ("0.0.0.0", [], "10.0.0.7:8088", True),
        ("0.0.0.0", [], "10.0.0.7.evil.example", False),
        ("::", [], "evil.example", False),
        ("10.0.0.7", [], "evil.example", False),
        ("0.0.0.0", ["qa.example"], "evil.example", False),
        ("0.0.0.0", ["qa.example"], "10.0.0.7:8088", True),
    ],
)
def test_by_which_names_a_front_may_be_called(
    listen: str, named: list[str], host: str, ours: bool
) -> None:
    assert host_check(listen, named)(host) is ours


@pytest.mark.parametrize(
    ("listen", "named", "host", "ours"),
    [
        ("0.0.0.0", [], "qa.example", True),
        ("0.0.0.0", ["qa.example"], "qa.example", True),
        ("0.0.0.0", ["qa.example"], "evil.example", False),
        ("127.0.0.1", [], "evil.example", False),
    ],
)
def test_by_which_names_a_front_with_keys_may_be_called(
    listen: str, named: list[str], host: str, ours: bool
) -> None:
    assert host_check(listen, named, keys=True)(host) is ours


@pytest.mark.parametrize(
    ("kind", "sent", "field"),
    [
        (http_pb2.AnswersRequest, {"requests": [{}, {"maxLoss": True}]}, "requests[1].maxLoss"),
        (http_pb2.AnswersRequest, {"requests": [{"answers": True}]}, "requests[0].answers"),
        (http_pb2.AnswersRequest, {"requests": [{"retriever": True}]}, "requests[0].retriever"),
        (answer_pb2.AnswerRequest, {"after": [{"sequence": False}]}, "after[0].sequence"),
        (answer_pb2.AnswerRequest, {"min_coverage": True}, "min_coverage"),
        (feed_pb2.PutRequest, {"passages": [{"version": True}]}, "passages[0].version"),
    ],
)
def test_a_boolean_is_no_number_and_no_choice_however_deep(
    kind: type[Message], sent: object, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_message(kind, json.dumps(sent).encode())
    (violation,) = caught.value.violations
    assert violation.field == field
    assert violation.description.startswith(("true is not a", "false is not a"))


@pytest.mark.parametrize(
    ("kind", "sent", "field", "problem"),
    [
        (read_pb2.ReadTextsRequest, {"passages": ["a"]}, "passages[0]", "is not an object"),
        (read_pb2.ReadTextsRequest, {"passages": [[]]}, "passages[0]", "is not an object"),
        (read_pb2.ReadTextsRequest, {"passages": "a"}, "passages", "is not a list"),
        (
            read_pb2.ReadTextsRequest,
            {"passages": [{"metadata": 1}]},
            "passages.metadata",
            "is not an object",
        ),
        (read_pb2.ReadTextsRequest, {"texts": ["a", None]}, "texts", "is null"),
        (read_pb2.ReadTextsRequest, {"texts": ["\ud83d"]}, "texts", "has a lone surrogate"),
        (
            http_pb2.AnswersRequest,
            {"requests": [{"\ud83d": 1}]},
            "requests[0].?",
            "'?' is not a field",
        ),
        (
            feed_pb2.PutRequest,
            {"passages": [{"id": "1", "id\0": "2"}]},
            "passages[0].id?",
            "'id?' is not a field",
        ),
        (answer_pb2.AnswerRequest, {"question\0": "b"}, "question?", "'question?' is not a field"),
        (answer_pb2.AnswerRequest, {"retriever": "\ud83d"}, "retriever", "'?' is none of DENSE"),
        (
            answer_pb2.AnswerRequest,
            {"retriever": "RETRIEVER_DENSE\0"},
            "retriever",
            "'RETRIEVER_DENSE?' is none of",
        ),
        (answer_pb2.AnswerRequest, {"retriever": [["a"]]}, "retriever", "is not an enum value"),
        (answer_pb2.AnswerRequest, {"retriever": 1.5}, "retriever", "is not an enum value"),
        (read_pb2.ReadTextsRequest, {"answers": -1}, "answers", "-1 is less than 0"),
        (
            read_pb2.ReadTextsRequest,
            {"minConfidence": math.inf},
            "minConfidence",
            "is not a number",
        ),
        (http_pb2.RerankRequest, {"documents": None}, "documents", "is null: send a list"),
        (http_pb2.RerankRequest, {"documents": "a"}, "documents", "is not a list"),
        (http_pb2.RerankRequest, {"documents": ["\ud83d"]}, "documents", "has a lone surrogate"),
        (http_pb2.AnswersRequest, {"requests": [None]}, "requests", "is null"),
    ],
)
def test_a_wrong_value_is_named_in_plain_words(
    kind: type[Message], sent: object, field: str, problem: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_message(kind, json.dumps(sent).encode())
    (violation,) = caught.value.violations
    assert violation.field == field
    assert violation.description.startswith(problem)


@pytest.mark.parametrize(
    ("kind", "field", "named"),
    [
        (http_pb2.AnswersRequest, "requests[0].max_loss", "requests[0].maxLoss"),
        (http_pb2.AnswersRequest, "requests.after[1].shard", "requests.after[1].shard"),
        (read_pb2.ReadTextsRequest, "min_confidence", "minConfidence"),
        (http_pb2.RerankRequest, "top_n", "top_n"),
        (feed_pb2.PutRequest, "passages[0].metadata.max_loss", "passages[0].metadata.max_loss"),
        (answer_pb2.AnswerRequest, "max_lose", "max_lose"),
        (answer_pb2.AnswerRequest, "request", "request"),
    ],
)
def test_an_error_names_fields_as_replies_do_and_nothing_else(
    kind: type[Message], field: str, named: str
) -> None:
    """Rerankers have names with underscores in replies; metadata has those of the caller."""
    with pytest.raises(InvalidRequestError) as caught, json_names_in_errors(kind):
        raise invalid_field(field, "is wrong").with_public("no")
    assert (str(caught.value), caught.value.public) == (f"{named}: is wrong", "no")


def test_a_list_may_be_null_and_the_text_may_begin_with_a_byte_order_mark() -> None:
    """Generated clients send null for lists that are not set, and some editors write the mark."""
    data = codecs.BOM_UTF8 + b'{"texts": ["a"], "passages": null}'
    assert list(parse_message(read_pb2.ReadTextsRequest, data).texts) == ["a"]


REQUESTS = [
    answer_pb2.AnswerRequest,
    http_pb2.AnswersRequest,
    head_pb2.PredictRequest,
    head_pb2.ListHeadsRequest,
    feed_pb2.PutRequest,
    feed_pb2.DeleteRequest,
    cluster_pb2.GetClusterRequest,
    read_pb2.ReadTextsRequest,
    read_pb2.HighlightTextRequest,
    http_pb2.RerankRequest,
]


def numeric(kind: Any) -> Iterator[list[Any]]:
    """The ways to all numbers and choices of a message, as lists of fields."""
    for field in kind.fields:
        if field.message_type is not None:
            if not field.message_type.full_name.startswith("google."):
                yield from ([field, *rest] for rest in numeric(field.message_type))
        elif field.cpp_type not in (field.CPPTYPE_BOOL, field.CPPTYPE_STRING):
            yield [field]


@pytest.mark.parametrize("kind", REQUESTS)
def test_no_number_of_any_call_may_be_a_boolean(kind: type[Message]) -> None:
    for way in numeric(kind.DESCRIPTOR):
        sent: Any = True
        for field in reversed(way):
            sent = {field.json_name: [sent] if field.is_repeated else sent}
        with pytest.raises(InvalidRequestError):
            parse_message(kind, json.dumps(sent).encode())


def test_metadata_may_have_booleans() -> None:
    sent = {"passages": [{"id": "a", "text": "A.", "metadata": {"seen": True, "list": [True]}}]}
    (passage,) = parse_message(feed_pb2.PutRequest, json.dumps(sent).encode()).passages
    assert passage.metadata["seen"] is True


@pytest.mark.parametrize("step", [1, 4_096, 16_383, 20_000])
@pytest.mark.parametrize(("size", "taken"), [(16_384, True), (16_385, False), (17_000, False)])
def test_headers_have_one_limit_however_they_come(size: int, taken: bool, step: int) -> None:
    connection, head = RationedConnection(), b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "
    whole = head + b"a" * (size - len(head) - 4) + b"\r\n\r\n"
    read: object = h11.NEED_DATA
    try:
        for start in range(0, size, step):
            connection.allow_more()
            connection.receive_data(whole[start : start + step])
            read = connection.next_event()
    except h11.RemoteProtocolError:
        read = None
    assert isinstance(read, h11.Request) is taken


def test_a_short_request_is_taken_with_a_long_body_behind_it() -> None:
    connection = RationedConnection()
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000\r\n\r\n"
    connection.receive_data(head + b"a" * 60_000)
    assert isinstance(connection.next_event(), h11.Request)
    assert isinstance(connection.next_event(), h11.Data)


async def test_work_is_cancelled_at_its_deadline() -> None:
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(DeadlineExceededError):
        await before_deadline(work(), Deadline.after(0.01, ManualClock()))
    assert cancelled.is_set()


async def test_a_timeout_of_the_work_itself_is_no_deadline() -> None:
    async def work() -> None:
        raise TimeoutError("the disk")

    with pytest.raises(TimeoutError, match="the disk"):
        await before_deadline(work(), Deadline.after(60))
