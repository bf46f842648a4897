"""Heads on several servers: fakes that answer, refuse, hang and leave."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from manual_clock import ManualClock
from structlog.testing import capture_logs
from tenacious import LONG, Change
from virtual_loop import in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, LabelScore, SequencePrediction
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
from winnow.heads.heads import States
from winnow.heads.placed import PlacedHeads
from winnow.replicas.policy.placement import Placement

SERVERS = ("a:1", "b:1", "c:1")
HEADS = [f"head-{number}" for number in range(12)]
STATES = np.ones((4, 3), np.float16)


@dataclass(eq=False)
class FakeServer:
    """A head server that can fail as a whole, or some heads of it, and can hang."""

    address: str
    fails: BaseException | None = None
    head_fails: WinnowError | None = None
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    hanging: int = 0
    given_up: int = 0
    closed: bool = False
    change: Change = field(default_factory=Change)

    def __post_init__(self) -> None:
        self.go_on.set()

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        assert not self.closed
        self.asked += head_ids
        self.clients.append(client)
        self.hanging += 1
        self.change.tell()
        try:
            await self.go_on.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        finally:
            self.hanging -= 1
            self.change.tell()
        if self.fails is not None:
            raise self.fails
        return [self._applied(head) for head in head_ids]

    def _applied(self, head: str) -> Applied:
        if self.head_fails is not None:
            return Applied(head=head, version=0, failure=self.head_fails)
        return Applied(
            head=head,
            version=1,
            prediction=SequencePrediction((LabelScore(self.address, 1.0, True),)),
        )

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True
        self.change.tell()


class Scene:
    def __init__(self, *servers: str) -> None:
        self.servers: dict[str, FakeServer] = {}
        self.change = Change()
        self.clock = ManualClock()
        self.heads = PlacedHeads(self._open, self.clock)
        self.heads.update(servers)

    @property
    def ejected(self) -> set[str]:
        replicas = self.heads._servers.pool.replicas.by_address
        return {address for address, replica in replicas.items() if not replica.active}

    async def fail(self, server: str, times: int) -> None:
        """A server fails so often, and is well again."""
        self.servers[server].fails = UnavailableError("x")
        for _ in range(times):
            await self.apply([head for head in HEADS if choice(0)[head] == server])
        self.servers[server].fails = None

    def _open(self, address: str) -> FakeServer:
        self.servers[address] = FakeServer(address, change=self.change)
        return self.servers[address]

    async def apply(self, heads: Sequence[str] = HEADS) -> dict[str, str]:
        """Who applied each head, or what failed."""
        applied = await self.heads.apply(STATES, heads, Deadline.after(LONG), "me")
        assert [each.head for each in applied] == list(heads)
        return {each.head: said(each) for each in applied}


def said(applied: Applied) -> str:
    if applied.failure is not None:
        return type(applied.failure).__name__
    assert isinstance(applied.prediction, SequencePrediction)
    return applied.prediction.labels[0].label


def choice(place: int) -> dict[str, str]:
    return {head: Placement(SERVERS).order(head)[place] for head in HEADS}


def without(gone: str) -> dict[str, str]:
    """Who has each head while one server is gone."""
    return {head: Placement([s for s in SERVERS if s != gone]).order(head)[0] for head in HEADS}


@pytest.fixture
async def scene() -> Scene:
    return Scene(*SERVERS)


async def test_each_head_is_applied_where_it_belongs_all_servers_at_once(scene: Scene) -> None:
    for server in scene.servers.values():
        server.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: all(server.hanging == 1 for server in scene.servers.values()))
    for server in scene.servers.values():
        server.go_on.set()
    assert await applying == choice(0)
    assert all(server.clients == ["me"] for server in scene.servers.values())


@pytest.mark.parametrize(
    "error",
    [UnavailableError("x"), OverloadedError("x"), IdentityError("x"), WinnowError("x")],
    ids=lambda error: type(error).__name__,
)
async def test_heads_of_a_server_that_fails_are_applied_by_their_second_choice(
    scene: Scene, error: WinnowError
) -> None:
    scene.servers["a:1"].fails = error
    assert await scene.apply() == without("a:1")


async def test_a_head_that_a_server_has_no_room_for_is_applied_by_the_second(scene: Scene) -> None:
    for refusal in (OverloadedError("the budget is full"), UnavailableError("no store")):
        scene.servers["a:1"].head_fails = refusal
        assert await scene.apply() == without("a:1")
    assert not scene.ejected


@pytest.mark.parametrize(
    "error",
    [NotFoundError("x"), IdentityError("x"), DeadlineExceededError("x"), WinnowError("x")],
    ids=lambda error: type(error).__name__,
)
async def test_a_head_that_fails_by_itself_fails_alone_and_nowhere_else(
    scene: Scene, error: WinnowError
) -> None:
    scene.servers["a:1"].head_fails = error
    expected = {head: type(error).__name__ if s == "a:1" else s for head, s in choice(0).items()}
    assert await scene.apply() == expected
    assert set(scene.servers["b:1"].asked) == {head for head, s in choice(0).items() if s == "b:1"}


async def test_a_wrong_request_is_not_sent_twice(scene: Scene) -> None:
    for server in scene.servers.values():
        server.fails = InvalidRequestError(Violation("states", "none"))
    assert set((await scene.apply()).values()) == {"InvalidRequestError"}
    asked = [head for server in scene.servers.values() for head in server.asked]
    assert sorted(asked) == sorted(HEADS)


@in_virtual_time
async def test_a_server_that_hangs_gets_a_rival_and_is_given_up_once_that_has_answered() -> None:
    scene = Scene(*SERVERS)
    scene.servers["a:1"].go_on.clear()
    assert await scene.apply() == without("a:1")
    await scene.change.when(lambda: scene.servers["a:1"].given_up == 1)


@in_virtual_time
async def test_a_late_answer_of_the_first_choice_still_counts() -> None:
    """The rival fails; what the first server brings at last is not thrown away."""
    scene = Scene(*SERVERS)
    hung = scene.servers["a:1"]
    hung.go_on.clear()
    for address in ("b:1", "c:1"):
        scene.servers[address].fails = UnavailableError("x")
    mine = [head for head in HEADS if choice(0)[head] == "a:1"]
    applying = asyncio.create_task(scene.apply(mine))
    others = [scene.servers["b:1"], scene.servers["c:1"]]
    await scene.change.when(lambda: bool(others[0].asked or others[1].asked))
    hung.go_on.set()
    assert set((await applying).values()) == {"a:1"}


async def test_all_failing_says_why_of_each_head(scene: Scene) -> None:
    for server in scene.servers.values():
        server.fails = UnavailableError("x")
    assert set((await scene.apply()).values()) == {"UnavailableError"}
    for head in HEADS:
        assert sum(head in server.asked for server in scene.servers.values()) == 2


async def test_a_caller_that_gives_up_ends_every_call(scene: Scene) -> None:
    for server in scene.servers.values():
        server.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: all(server.hanging for server in scene.servers.values()))
    applying.cancel()
    await asyncio.wait([applying])
    assert applying.cancelled()
    await scene.change.when(lambda: all(server.given_up == 1 for server in scene.servers.values()))
    assert not any(r.outstanding for r in scene.heads._servers.pool.replicas.by_address.values())


async def test_a_server_that_fails_is_ejected_until_a_probe_succeeds(scene: Scene) -> None:
    down = scene.servers["a:1"]
    down.fails = UnavailableError("x")
    with capture_logs() as logged:
        for _ in range(3):
            assert await scene.apply() == without("a:1")
    assert [(line["event"], line["server"]) for line in logged] == [("head server ejected", "a:1")]
    asked = len(down.asked)
    assert await scene.apply() == without("a:1")
    assert len(down.asked) == asked, "it is ejected"
    down.fails = None
    scene.clock.advance(1.0)
    with capture_logs() as logged:
        assert await scene.apply() == choice(0)
    assert [line["event"] for line in logged] == ["head server readmitted"]
    assert not scene.ejected


async def test_a_server_that_is_tried_again_gets_one_call_at_a_time(scene: Scene) -> None:
    await scene.fail("a:1", 3)
    scene.clock.advance(1.0)
    probed = scene.servers["a:1"]
    probed.go_on.clear()
    first = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: probed.hanging == 1)
    assert await scene.apply() == without("a:1")
    probed.go_on.set()
    assert await first == choice(0)
    assert not scene.ejected


async def test_a_second_attempt_probes_no_server(scene: Scene) -> None:
    await scene.fail("a:1", 3)
    scene.clock.advance(1.0)
    mine = [head for head in HEADS if Placement(SERVERS).order(head)[:2] == ["b:1", "a:1"]]
    scene.servers["b:1"].fails = UnavailableError("x")
    scene.servers["a:1"].asked.clear()
    assert set((await scene.apply(mine)).values()) == {"c:1"}
    assert not scene.servers["a:1"].asked


async def test_if_all_are_ejected_each_head_is_asked_for_at_its_first_choice(scene: Scene) -> None:
    for server in scene.servers.values():
        server.fails = UnavailableError("x")
    for _ in range(3):
        await scene.apply()
    assert scene.ejected == set(SERVERS)
    for server in scene.servers.values():
        server.fails = None
    assert await scene.apply() == choice(0)


async def test_a_refusal_is_a_sign_of_life(scene: Scene) -> None:
    for server in scene.servers.values():
        server.fails = OverloadedError("full")
    for _ in range(9):
        await scene.apply()
    assert not scene.ejected


async def test_a_server_with_another_encoder_is_ejected_at_once(scene: Scene) -> None:
    scene.servers["a:1"].fails = IdentityError("other")
    await scene.apply()
    assert scene.ejected == {"a:1"}


@pytest.mark.parametrize(("waited", "ejected"), [(0.05, set()), (0.15, set(SERVERS))])
async def test_silence_counts_once_it_is_longer_than_any_server_is_silent(
    scene: Scene, waited: float, ejected: set[str]
) -> None:
    for server in scene.servers.values():
        server.go_on.clear()
    for _ in range(3):
        applying = asyncio.create_task(scene.apply())
        await scene.change.when(lambda: all(server.hanging for server in scene.servers.values()))
        scene.clock.advance(waited)
        applying.cancel()
        await asyncio.wait([applying])
        await scene.change.when(
            lambda: not any(server.hanging for server in scene.servers.values())
        )
    assert scene.ejected == ejected


async def test_servers_come_and_go_and_keep_their_records(scene: Scene) -> None:
    await scene.fail("a:1", 3)
    scene.heads.update(("a:1", "d:1"))
    assert scene.ejected == {"a:1"}
    assert set((await scene.apply()).values()) == {"d:1"}
    scene.heads.update(())
    assert set((await scene.apply()).values()) == {"UnavailableError"}


async def test_without_servers_each_head_says_so() -> None:
    scene = Scene()
    assert set((await scene.apply()).values()) == {"UnavailableError"}


async def test_a_server_alone_has_no_rival_and_all_the_time() -> None:
    scene = Scene("a:1")
    scene.servers["a:1"].fails = UnavailableError("x")
    assert set((await scene.apply()).values()) == {"UnavailableError"}
    assert sorted(scene.servers["a:1"].asked) == sorted(HEADS)


async def test_a_server_that_leaves_ends_its_calls_and_is_then_closed(
    scene: Scene,
) -> None:
    leaving = scene.servers["a:1"]
    leaving.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: leaving.hanging == 1)
    scene.heads.update(("b:1", "c:1"))
    assert await scene.apply() == without("a:1")
    assert not leaving.closed
    leaving.go_on.set()
    assert await applying == choice(0)
    await scene.change.when(lambda: leaving.closed)


async def test_a_second_attempt_knows_which_servers_have_left(scene: Scene) -> None:
    mine = [head for head in HEADS if Placement(SERVERS).order(head)[:2] == ["a:1", "c:1"]]
    first = scene.servers["a:1"]
    first.fails = UnavailableError("x")
    first.go_on.clear()
    applying = asyncio.create_task(scene.apply(mine))
    await scene.change.when(lambda: first.hanging == 1)
    scene.heads.update(("a:1", "b:1"))
    first.go_on.set()
    assert set((await applying).values()) == {"b:1"}


async def test_a_server_that_returns_with_calls_in_hand_gets_its_heads_again(scene: Scene) -> None:
    leaving = scene.servers["a:1"]
    leaving.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: leaving.hanging == 1)
    scene.heads.update(("b:1", "c:1"))
    scene.heads.update(SERVERS)
    leaving.go_on.set()
    assert await applying == choice(0)
    assert await scene.apply() == choice(0)


async def test_calls_in_hand_fail_when_all_is_closed_and_so_do_later_ones(scene: Scene) -> None:
    for server in scene.servers.values():
        server.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: all(server.hanging for server in scene.servers.values()))
    await scene.heads.close()
    assert set((await applying).values()) == {"UnavailableError"}
    assert set((await scene.apply()).values()) == {"UnavailableError"}


async def test_closing_cancels_calls_in_hand(scene: Scene) -> None:
    for server in scene.servers.values():
        server.go_on.clear()
    applying = asyncio.create_task(scene.apply())
    await scene.change.when(lambda: all(server.hanging for server in scene.servers.values()))
    await scene.heads.close()
    assert all(server.closed and server.given_up == 1 for server in scene.servers.values())
    applying.cancel()
    await asyncio.wait([applying])


async def test_a_mistake_in_the_program_is_told_and_ends_every_call(scene: Scene) -> None:
    scene.servers["a:1"].fails = ZeroDivisionError()
    scene.servers["b:1"].go_on.clear()
    with pytest.raises(ZeroDivisionError):
        await scene.apply()
    await scene.change.when(lambda: scene.servers["b:1"].given_up == 1)
