"""The parts of attacks: frames, random messages, pacing, labels, criteria."""

import asyncio
from collections import Counter as Tally
from random import Random

import pytest
from google.protobuf.message import DecodeError
from prometheus_client import CollectorRegistry, Counter, generate_latest
from tenacious import LONG

from bench.hostile import frames, payloads, requests
from bench.hostile.attacks.half_sent import send_half_messages
from bench.hostile.attacks.target import Target, run_paced
from bench.hostile.criteria import (
    LABEL,
    OUTCOME,
    allowed_outcomes,
    no_value_named,
    shuts_down_in_time,
)
from bench.hostile.labels import ALLOWED_VALUES, unexpected_labels
from bench.scenarios.measurements import Measurements
from winnow.content_node.metrics import NodeMetrics
from winnow.stateless.http.connection_limiter import HttpMetrics
from winnow.stateless.metrics import AdmissionMetrics, ClusterMetrics, FrontMetrics, ReplicaMetrics
from winnow.telemetry.metrics import BundleMetrics, RpcMetrics
from winnow.v1 import answer_pb2


def test_a_head_is_parsed_from_a_frame() -> None:
    data = frames.frame(frames.DATA, 7, b"hello", 1)
    assert frames.parse_header(data[: frames.HEADER_BYTES]) == frames.FrameHeader(
        5, frames.DATA, 1, 7
    )
    assert data[frames.HEADER_BYTES :] == b"hello"


def test_header_fields_are_literals_with_their_lengths() -> None:
    assert frames.header_fields({"te": "trailers"}) == b"\0\x02te\x08trailers"


def test_settings_frames_have_the_window_size() -> None:
    payload = b"\0\x03\0\0\0\x64" + b"\0\x04\0\1\0\0"
    assert list(frames.window_sizes(payload)) == [65_536]


def test_random_messages_follow_from_the_seed_and_are_of_many_kinds() -> None:
    def made(seed: int) -> list[bytes]:
        chance = Random(seed)
        return [payloads.random_question(chance)[1] for _ in range(300)]

    def reads(data: bytes) -> bool:
        try:
            answer_pb2.AnswerRequest.FromString(data)
        except DecodeError:
            return False
        return True

    assert made(1) == made(1) != made(2)
    assert {reads(data) for data in made(1)} == {True, False}


def test_random_requests_follow_from_the_seed_and_are_of_many_kinds() -> None:
    def made(seed: int) -> list[bytes]:
        chance = Random(seed)
        return [requests.random_request(chance) for _ in range(300)]

    assert made(1) == made(1) != made(2)
    methods = {each.split(b" ")[0] for each in made(1)}
    assert {b"POST", b"GET", b"OPTIONS"} <= methods


@pytest.mark.parametrize("number", range(4))
def test_long_bodies_are_longer_than_half_the_limit(number: int) -> None:
    assert sum(map(len, requests.long_body(number))) > 200_000


async def test_paced_calls_are_counted_by_outcome_and_bounded() -> None:
    most = running = 0

    async def act(number: int) -> str:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return "even" if number % 2 == 0 else "odd"

    assert await run_paced(9, 0.01, act, max_concurrent=2) <= Tally(even=5, odd=4)
    assert most <= 2
    assert await run_paced(5, 0.0, act) == Tally()


def test_unlisted_labels_are_strange() -> None:
    registry = CollectorRegistry()
    metric = Counter("calls", "Calls", ("method", "asker"), registry=registry)
    metric.labels("Answer", payloads.MARK).inc()
    assert set(unexpected_labels(generate_latest(registry).decode())) == {f"asker={payloads.MARK}"}
    metric.labels(payloads.MARK, "").inc()
    assert f"method={payloads.MARK}" in set(unexpected_labels(generate_latest(registry).decode()))


def test_every_label_of_every_process_is_listed() -> None:
    """A new label has to be thought about: can a client choose its value?"""
    registry = CollectorRegistry()
    for metrics in (
        AdmissionMetrics,
        BundleMetrics,
        ClusterMetrics,
        FrontMetrics,
        HttpMetrics,
        NodeMetrics,
        ReplicaMetrics,
        RpcMetrics,
    ):
        metrics(registry)
    collectors = set(registry._collector_to_names)
    names = {label for each in collectors for label in getattr(each, "_labelnames", ())}
    assert {"method", "shard", "replica"} <= names <= set(ALLOWED_VALUES)


def test_an_outcome_that_is_not_allowed_breaks_the_promise() -> None:
    judge = allowed_outcomes("OK", "UNAVAILABLE", min_count=3)
    marks = {OUTCOME + "OK": 3.0}
    assert judge(Measurements({}, marks)).holds is True
    finding = judge(Measurements({}, {**marks, OUTCOME + "INTERNAL": 1.0}))
    assert finding.holds is False
    assert "INTERNAL is not allowed" in finding.summary


def test_too_few_outcomes_are_inconclusive() -> None:
    judge = allowed_outcomes("OK", min_count=3)
    assert judge(Measurements({}, {OUTCOME + "OK": 2.0})).holds is None
    assert judge(Measurements({}, {})).holds is None


def test_values_with_a_forbidden_prefix_are_listed() -> None:
    judge = no_value_named(LABEL, "labels")
    assert judge(Measurements({}, {})).holds
    finding = judge(Measurements({}, {LABEL + "asker=me": 1.0}))
    assert (finding.holds, finding.summary) == (False, "labels: asker=me")


@pytest.mark.parametrize(("attacked", "expected"), [(3.0, True), (3.1, False)])
def test_shutdown_under_attack_may_take_a_bounded_extra_time(
    attacked: float, expected: bool
) -> None:
    marks = {"front, seconds when quiet": 2.0, "front, seconds while attacked": attacked}
    assert shuts_down_in_time("front", 1.0)(Measurements({}, marks)).holds is expected


async def test_half_sent_messages_end_with_the_connection() -> None:
    """A server that closes the connection ends the attack at once."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.frame(frames.GOAWAY, 0, bytes(8)))
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        attacked = Target(front=address, seconds=600.0)
        found = await asyncio.wait_for(send_half_messages(attacked), LONG)
    assert found == {"closed": 100}
