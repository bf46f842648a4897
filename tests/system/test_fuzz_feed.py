"""Random passages and deletions through a real server: each call ends in a status that the proto
names, and nothing half wrong is stored.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest
from fed_front import FedFront
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.v1 import feed_pb2

PUT, PUT_STREAM, DELETE, DELETE_STREAM = (
    f"/winnow.v1.FeedService/{name}" for name in ("Put", "PutStream", "Delete", "DeleteStream")
)
EXAMPLES = settings(max_examples=60, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
REFUSED = {
    "INVALID_ARGUMENT",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "FAILED_PRECONDITION",
    "NOT_FOUND",  # a corrupted request may name an index
}

_LOST = "Internal error from Core"
"""Status that a client reports if its stream ends while it writes (grpc #36066)."""

texts = st.one_of(
    st.just("some words"),
    st.text(max_size=40),
    st.sampled_from(["", " ", "a" * 10_001, "\0", "각 " * 5_000]),
)
ids = st.one_of(st.sampled_from(["a", "b", "", "a" * 257, "a" * 513, "\x7f"]), st.text(max_size=20))
versions = st.none() | st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])
plain = st.none() | st.booleans() | st.floats(width=32) | st.text(max_size=10)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
metadata = st.one_of(st.just({}), st.dictionaries(st.text(max_size=5), values, max_size=4))


@st.composite
def fed_passages(draw: st.DrawFn) -> feed_pb2.FedPassage:
    passage = feed_pb2.FedPassage(
        id=draw(ids), title=draw(texts), text=draw(texts), version=draw(versions)
    )
    passage.metadata.update(draw(metadata))
    return passage


puts = st.builds(feed_pb2.PutRequest, passages=st.lists(fed_passages(), max_size=5))
deletions = st.builds(
    feed_pb2.DeleteRequest,
    deletions=st.lists(st.builds(feed_pb2.Deletion, id=ids, version=versions), max_size=5),
)


class Served:
    """A front on a separate event loop, used by consecutive examples."""

    def __init__(self, bundle: Bundle) -> None:
        self.front = FedFront(bundle)
        self._runner, self._stack = asyncio.Runner(), contextlib.AsyncExitStack()
        self._channel = self._runner.run(self._start())

    async def _start(self) -> grpc.aio.Channel:
        address = await self._stack.enter_async_context(self.front.serving())
        return await self._stack.enter_async_context(grpc.aio.insecure_channel(address))

    def call(self, method: str, *messages: bytes) -> tuple[str, status_pb2.Status]:
        """The name of the status, and its details."""
        return self._runner.run(self._call(method, messages))

    async def _call(self, method: str, messages: Sequence[bytes]) -> tuple[str, status_pb2.Status]:
        call: Any
        if method.endswith("Stream"):
            stream: Any = self._channel.stream_unary(method)
            call = stream(iter(messages), timeout=LONG)
        else:
            unary: Any = self._channel.unary_unary(method)
            call = unary(messages[0], timeout=LONG)
        code, trailing = await call.code(), await call.trailing_metadata()
        if await call.details() == _LOST:
            return "LOST", status_pb2.Status()
        details = dict(trailing or ()).get("grpc-status-details-bin", b"")
        return code.name, status_pb2.Status.FromString(details)

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()
        self.front.close()


@pytest.fixture(scope="module")
def served(bundle: Bundle) -> Iterator[Served]:
    made = Served(bundle)
    yield made
    made.close()


def stored_or_refused(served: Served, method: str, *messages: bytes) -> str:
    """Expects an error to name its request and fields, and no request to stay in flight."""
    name, status = served.call(method, *messages)
    internal = {"method": method.rpartition("/")[2], "status": "INTERNAL"}
    assert not served.front.sample("winnow_request_seconds_count", **internal)
    if name == "LOST":
        return name
    assert name in {"OK", *REFUSED}, (name, status.message)
    assert len(status.message.encode()) < 2_100
    if name != "OK":
        assert "google.rpc.RequestInfo" in {detail.TypeName() for detail in status.details}
    if name == "INVALID_ARGUMENT":
        bad = error_details_pb2.BadRequest()
        assert any(detail.Unpack(bad) for detail in status.details)
        assert all(violation.field for violation in bad.field_violations)
    assert served.front.admission.in_flight == 0
    return name


def spoilt(message: Message, data: st.DataObject) -> bytes:
    """Replaces some bytes of a message by other bytes."""
    whole = message.SerializeToString()
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 3))
    return whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + cut :]


@EXAMPLES
@given(request=puts)
def test_any_passages_are_all_stored_or_refused_with_a_field(
    served: Served, request: feed_pb2.PutRequest
) -> None:
    before = sum(len(shard.batches) for shard in served.front.shards)
    name = stored_or_refused(served, PUT, request.SerializeToString())
    if name == "OK":
        assert all(
            each.id in served.front.passages for each in request.passages if not each.version
        )
    else:
        assert sum(len(shard.batches) for shard in served.front.shards) == before


@EXAMPLES
@given(request=deletions)
def test_any_deletions_are_applied_or_refused_with_a_field(
    served: Served, request: feed_pb2.DeleteRequest
) -> None:
    if stored_or_refused(served, DELETE, request.SerializeToString()) == "OK":
        gone = {each.id for each in request.deletions if not each.HasField("version")}
        assert not gone & served.front.passages.keys()


@EXAMPLES
@given(request=puts | deletions, data=st.data())
def test_corrupted_requests_are_stored_or_refused(
    served: Served, request: Message, data: st.DataObject
) -> None:
    method = PUT if isinstance(request, feed_pb2.PutRequest) else DELETE
    stored_or_refused(served, method, spoilt(request, data))


@EXAMPLES
@given(
    method=st.sampled_from([PUT, DELETE, PUT_STREAM, DELETE_STREAM]), sent=st.binary(max_size=200)
)
@example(method=PUT, sent=feed_pb2.PutRequest(index="some words").SerializeToString())
def test_any_bytes_as_a_request_are_stored_or_refused(
    served: Served, method: str, sent: bytes
) -> None:
    stored_or_refused(served, method, sent)


@EXAMPLES
@given(requests=st.lists(puts, max_size=4))
def test_any_stream_of_passages_is_stored_or_refused(
    served: Served, requests: list[feed_pb2.PutRequest]
) -> None:
    stored_or_refused(served, PUT_STREAM, *(each.SerializeToString() for each in requests))


@EXAMPLES
@given(requests=st.lists(deletions, max_size=4), data=st.data())
def test_any_stream_of_deletions_is_applied_or_refused(
    served: Served, requests: list[feed_pb2.DeleteRequest], data: st.DataObject
) -> None:
    stored_or_refused(served, DELETE_STREAM, *(spoilt(each, data) for each in requests))


def test_the_largest_request_is_stored(served: Served) -> None:
    passages = [feed_pb2.FedPassage(id=f"l{n}", text="word " * 2_000) for n in range(100)]
    request = feed_pb2.PutRequest(passages=passages)
    assert 1_000_000 < request.ByteSize() < 1 << 20
    assert stored_or_refused(served, PUT, request.SerializeToString()) == "OK"


def test_a_message_beyond_the_size_limit_is_refused(served: Served) -> None:
    request = feed_pb2.PutRequest(passages=[feed_pb2.FedPassage(id="a", text="a" * 1_100_000)])
    name, _ = served.call(PUT, request.SerializeToString())
    assert name == "RESOURCE_EXHAUSTED"
