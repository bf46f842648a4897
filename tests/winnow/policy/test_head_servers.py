"""Which head server is asked, and which are left out for a while."""

import pytest
from manual_clock import ManualClock

from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.policy.head_servers import (
    HeadServers,
    call_worth_another_server,
    worth_another_server,
)
from winnow.replicas.policy.placement import Placement

SERVERS = ("a:1", "b:1", "c:1")
HEADS = [f"head-{number}" for number in range(40)]
DOWN = UnavailableError("connection refused")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def servers(clock: ManualClock) -> HeadServers:
    made = HeadServers(clock)
    made.update(SERVERS)
    return made


def asked(
    servers: HeadServers, heads: list[str], tried: dict[str, str] | None = None
) -> dict[str, str]:
    """Where each head is asked for; the calls are answered."""
    calls = servers.begin(heads, tried or {})
    for call in calls:
        servers.answered(call)
    return {head: call.server for call in calls for head in call.heads}


def fail(servers: HeadServers, server: str, times: int) -> None:
    heads = [head for head in HEADS if Placement(SERVERS).order(head)[0] == server]
    for _ in range(times):
        (call,) = servers.begin(heads)
        assert call.server == server
        servers.failed(call, DOWN)


def test_each_head_is_asked_for_at_its_first_choice_in_one_call_a_server(
    servers: HeadServers,
) -> None:
    calls = servers.begin(HEADS)
    assert len(calls) == len({call.server for call in calls}) == 3
    for call in calls:
        assert all(Placement(SERVERS).order(head)[0] == call.server for head in call.heads)
    assert sorted(head for call in calls for head in call.heads) == sorted(HEADS)


def test_what_was_tried_is_asked_for_at_the_second_choice(servers: HeadServers) -> None:
    tried = asked(servers, HEADS)
    for head, server in asked(servers, HEADS, tried).items():
        assert server == Placement(SERVERS).order(head)[1]


def test_a_server_that_fails_three_times_is_left_out_then_probed_once_then_back(
    servers: HeadServers, clock: ManualClock
) -> None:
    fail(servers, "a:1", 3)
    assert servers.left_out == 1
    assert "a:1" not in asked(servers, HEADS).values()
    clock.advance(1.0)
    first, second = servers.begin(HEADS), servers.begin(HEADS)
    assert [call.probe for call in first if call.server == "a:1"] == [True]
    assert "a:1" not in {call.server for call in second}
    for call in (*first, *second):
        servers.answered(call)
    assert servers.left_out == 0
    assert "a:1" in asked(servers, HEADS).values()


def test_a_probe_that_fails_leaves_it_out_for_longer(
    servers: HeadServers, clock: ManualClock
) -> None:
    fail(servers, "a:1", 3)
    clock.advance(1.0)
    fail(servers, "a:1", 1)
    clock.advance(1.5)
    assert "a:1" not in asked(servers, HEADS).values()
    clock.advance(0.5)
    assert "a:1" in asked(servers, HEADS).values()


def test_what_has_failed_before_probes_nobody(servers: HeadServers, clock: ManualClock) -> None:
    fail(servers, "a:1", 3)
    clock.advance(1.0)
    assert "a:1" not in asked(servers, HEADS, dict.fromkeys(HEADS, "b:1")).values()


def test_where_all_are_left_out_the_first_choice_is_asked(servers: HeadServers) -> None:
    for server in SERVERS:
        fail(servers, server, 3)
    assert servers.left_out == 3
    for head, server in asked(servers, HEADS).items():
        assert server == Placement(SERVERS).order(head)[0]


def test_a_refusal_is_a_sign_of_life(servers: HeadServers) -> None:
    for _ in range(9):
        for call in servers.begin(HEADS):
            servers.failed(call, OverloadedError("full"))
    assert servers.left_out == 0


def test_a_server_with_another_encoder_is_left_out_at_once(servers: HeadServers) -> None:
    for call in servers.begin(HEADS):
        if call.server == "a:1":
            servers.failed(call, IdentityError("other"))
        else:
            servers.answered(call)
    assert servers.is_left_out("a:1")
    assert servers.left_out == 1


@pytest.mark.parametrize(("waited", "out"), [(0.05, 0), (0.15, 3)])
def test_silence_counts_once_it_is_longer_than_any_server_is_silent(
    servers: HeadServers, clock: ManualClock, waited: float, out: int
) -> None:
    for _ in range(3):
        calls = servers.begin(HEADS)
        clock.advance(waited)
        for call in calls:
            servers.failed(call, None)
    assert servers.left_out == out


def test_servers_come_and_go_and_keep_their_records(servers: HeadServers) -> None:
    fail(servers, "a:1", 3)
    (call, *_) = servers.begin(HEADS)
    servers.update(("a:1", "d:1"))
    servers.failed(call, DOWN)  # perhaps of a server that is gone
    assert servers.known == {"a:1", "d:1"}
    assert servers.left_out == 1
    assert set(asked(servers, HEADS).values()) == {"d:1"}
    servers.update(())
    assert servers.begin(HEADS) == []


def test_with_one_server_there_is_no_second_choice(clock: ManualClock) -> None:
    servers = HeadServers(clock)
    servers.update(("a:1",))
    assert servers.begin(["x"], {"x": "a:1"}) == []


@pytest.mark.parametrize(
    ("error", "of_head", "of_call"),
    [
        (UnavailableError("x"), True, True),
        (OverloadedError("x"), True, True),
        (DeadlineExceededError("x"), False, True),
        (IdentityError("x"), False, True),
        (WinnowError("x"), False, True),
        (NotFoundError("x"), False, True),
        (InvalidRequestError(Violation("f", "x")), False, False),
        (None, False, False),
    ],
)
def test_what_another_server_may_do_better(
    error: WinnowError | None, of_head: bool, of_call: bool
) -> None:
    assert worth_another_server(error) is of_head
    if error is not None:
        assert call_worth_another_server(error) is of_call
