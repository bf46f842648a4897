"""Who is there: nodes that come, go, hang and come back."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from fakes import FakeSearcher, OneShardNode, reading
from manual_clock import ManualClock
from tenacious import happens

from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport
from winnow.errors import DeadlineExceededError, NotLoadedError, UnavailableError, WinnowError
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.node import Node, ReplicaAt, present_replicas
from winnow.stateless.cluster.polling import DiscoverySettings

SETTINGS = DiscoverySettings(resolve_every=0.001, poll_every=0.001, poll_timeout=60.0)
LATE = DeadlineExceededError("late")

A, B = ReplicaAt("a", 0), ReplicaAt("b", 0)


class Target:
    """A target whose addresses a test changes."""

    def __init__(self, addresses: str) -> None:
        self.target = f"dns:///{addresses}:1"
        self.now = addresses
        self.fails = False

    async def addresses(self) -> frozenset[str]:
        if self.fails:
            raise UnavailableError("no name server")
        return frozenset(self.now)


class Hanging(Target):
    """A target whose name server does not reply."""

    def __init__(self) -> None:
        super().__init__("silent")

    async def addresses(self) -> frozenset[str]:
        await asyncio.Event().wait()
        return frozenset()


class Watched:
    """A discovery over fakes, and what it told."""

    def __init__(self, addresses: str, settings: DiscoverySettings = SETTINGS) -> None:
        self.fakes = {name: FakeSearcher([reading(name)]) for name in "abc"}
        self.target = Target(addresses)
        self.closed: list[str] = []
        self.told: list[set[str]] = []
        self.busy: set[str] = set()
        """Nodes with calls in hand."""
        self.deaf = self.stuck = False
        """Whether being told, or closing a node, fails."""
        self.others: list[Target] = []
        """Targets besides that one."""
        self._settings = settings

    def _open(self, address: str) -> Node:
        async def close() -> None:
            if self.stuck:
                raise OSError("cannot be closed")
            self.closed.append(address)

        return Node(
            address, OneShardNode(self.fakes[address]), close, busy=lambda: address in self.busy
        )

    def _changed(self) -> None:
        if self.deaf:
            raise ValueError("not now")
        self.told.append({replica.address for replica in self.discovery.present_replicas()})

    async def sees(self, names: str) -> None:
        await happens(lambda: bool(self.told) and self.told[-1] == set(names))

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator["Watched"]:
        targets = [self.target, *self.others]
        self.discovery = Discovery(
            targets,
            self._open,
            self._changed,
            settings=self._settings,
            rng=random.Random(1),
            clock=ManualClock(),  # a question stays a recent one, however slow the machine is
        )
        task = asyncio.create_task(self.discovery.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_nodes_that_reply_are_present() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        assert watched.discovery.present_replicas()[A].passages == 1
        assert watched.discovery.searcher(A) is watched.fakes["a"]
    assert sorted(watched.closed) == ["a", "b"]
    with pytest.raises(UnavailableError, match="a: the node is no longer in the cluster"):
        watched.discovery.searcher(A)


async def test_a_node_that_refuses_is_gone_at_once_and_comes_back() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.fakes["a"].fails = UnavailableError("a: connection refused")
        await watched.sees("b")
        node = watched.discovery.nodes["a"]
        assert node.infos  # what it was is not forgotten
        assert str(node.error) == "a: connection refused"
        watched.fakes["a"].fails = None
        await watched.sees("ab")
        assert not watched.closed


async def test_a_node_that_dns_forgot_stays_while_it_answers() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.target.now = "b"
        calls = watched.fakes["a"].calls
        await happens(lambda: watched.fakes["a"].calls > calls + 3)
        assert set(watched.discovery.present_replicas()) == {A, B}
        watched.fakes["a"].fails = UnavailableError("gone")
        await happens(lambda: watched.closed == ["a"])
        assert watched.told[-1] == {"b"}
        with pytest.raises(UnavailableError, match="a: the node is no longer in the cluster"):
            watched.discovery.searcher(A)


async def test_a_node_that_dns_forgot_is_not_closed_while_it_has_calls_in_hand() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.busy.add("a")
        watched.target.now = "b"
        watched.fakes["a"].fails = UnavailableError("the node is leaving")
        await watched.sees("b")
        calls = watched.fakes["a"].calls
        await happens(lambda: watched.fakes["a"].calls > calls + 3)
        assert not watched.closed
        assert watched.discovery.searcher(A) is watched.fakes["a"]
        watched.busy.clear()
        await happens(lambda: watched.closed == ["a"])


async def test_polling_goes_on_after_any_reply_of_a_node() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.fakes["a"].fails = ValueError("nonsense")
        await watched.sees("b")
        watched.fakes["a"].fails = None
        await watched.sees("ab")


async def test_a_change_whose_report_failed_is_reported_again() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.deaf = True
        watched.target.now = "b"
        watched.fakes["a"].fails = UnavailableError("gone")
        await happens(lambda: watched.closed == ["a"])
        watched.deaf = False
        await watched.sees("b")
        watched.target.now = "ab"
        watched.fakes["a"].fails = None
        await watched.sees("ab")


async def test_a_node_that_cannot_be_closed_ends_nothing_else() -> None:
    async with Watched("abc").looking() as watched:
        await watched.sees("abc")
        watched.stuck = True
        watched.target.now = "b"
        watched.fakes["a"].fails = UnavailableError("gone")
        await watched.sees("bc")
        watched.fakes["c"].fails = UnavailableError("gone")
        await watched.sees("b")
        watched.stuck = False


async def test_a_look_up_that_hangs_holds_up_no_other_target() -> None:
    watched = Watched("")
    watched.others = [Hanging(), Target("ab")]
    async with watched.looking():
        await watched.sees("ab")
        watched.others[1].now = "abc"
        await watched.sees("abc")


async def test_when_a_node_is_lost_every_target_is_looked_up_again_at_once() -> None:
    watched = Watched("a", replace(SETTINGS, resolve_every=3600.0))
    watched.others = [Target("b")]
    async with watched.looking():
        await watched.sees("ab")
        watched.others[0].now = "c"
        watched.fakes["a"].fails = UnavailableError("gone")
        await watched.sees("bc")


async def test_nodes_that_dns_finds_later_join() -> None:
    async with Watched("a").looking() as watched:
        await watched.sees("a")
        watched.target.now = "abc"
        await watched.sees("abc")


async def test_if_names_cannot_be_looked_up_the_known_nodes_stay() -> None:
    async with Watched("ab").looking() as watched:
        await watched.sees("ab")
        watched.target.fails = True
        watched.fakes["a"].fails = UnavailableError("gone")
        await watched.sees("b")
        watched.fakes["a"].fails = None
        await watched.sees("ab")


SELDOM = replace(SETTINGS, poll_idle=3_600.0)


async def test_the_first_question_has_every_node_looked_at() -> None:
    """So that a node lost in a quiet time is noticed as soon as if questions had come."""
    async with Watched("ab", SELDOM).looking() as watched:
        await watched.sees("ab")
        watched.fakes["a"].fails = UnavailableError("gone")
        watched.discovery.record_request()
        await watched.sees("b")


async def test_while_questions_come_nodes_are_looked_at_as_often_as_ever() -> None:
    async with Watched("ab", SELDOM).looking() as watched:
        await watched.sees("ab")
        watched.discovery.record_request()
        calls = watched.fakes["a"].calls
        await happens(lambda: watched.fakes["a"].calls > calls + 5)


async def test_without_questions_only_unhealthy_nodes_are_polled_often() -> None:
    """Those that have calls in hand, too."""
    watched = Watched("abc", SELDOM)
    watched.fakes["b"].fails = UnavailableError("still loading")
    watched.busy.add("c")
    async with watched.looking():
        await watched.sees("ac")
        calls = {name: fake.calls for name, fake in watched.fakes.items()}
        await happens(lambda: watched.fakes["b"].calls > calls["b"] + 5)
        await happens(lambda: watched.fakes["c"].calls > calls["c"] + 5)
        assert watched.fakes["a"].calls == calls["a"]
        watched.fakes["b"].fails = None
        await watched.sees("abc")


async def nodes(*names: str, generation: str = "") -> list[Node]:
    """Replicas of one shard, all of which replied."""
    made = []
    for name in names:
        fake = FakeSearcher([reading(name)])
        node = Node(name, OneShardNode(fake), fake.go_on.wait)  # type: ignore[arg-type]
        info = replace(await fake.info(Deadline.after(60)), generation=generation)
        node.record_reply(NodeReport((info,)))
        made.append(node)
    return made


async def test_a_replica_is_left_out_at_its_first_silence_while_another_one_replies() -> None:
    first, second = await nodes("a", "b")
    assert set(present_replicas([first, second], 2)) == {A, B}
    first.record_failure(LATE)
    assert set(present_replicas([first, second], 2)) == {B}
    second.record_failure(LATE)
    assert set(present_replicas([first, second], 2)) == {A, B}, (
        "there is none that can be preferred"
    )
    second.record_reply(await second.content.report(Deadline.after(60)))
    assert set(present_replicas([first, second], 2)) == {B}


async def test_a_node_of_other_rows_does_not_stand_in() -> None:
    [first], [other] = await nodes("a"), await nodes("b", generation="new")
    first.record_failure(LATE)
    assert set(present_replicas([first, other], 2)) == {A, B}


@pytest.mark.parametrize(("mine", "others"), [(0, 7), (3, 4), (7, 0), (9, 0)])
async def test_reads_of_other_fronts_are_told_from_the_reads_of_this_one(
    mine: int, others: int
) -> None:
    fake = FakeSearcher([reading("a")])
    node = Node("a", OneShardNode(fake), fake.go_on.wait, reads=lambda: mine)  # type: ignore[arg-type]
    info = replace(await fake.info(Deadline.after(60)), reads_in_hand=7)
    node.record_reply(NodeReport((info,)))
    assert node.others_reads == others


@pytest.mark.parametrize(
    ("errors", "there"),
    [
        ([], True),
        ([LATE], True),
        ([LATE, LATE], False),
        ([WinnowError("?")], True),
        ([UnavailableError("refused")], False),
        ([NotLoadedError("damaged")], False),
    ],
)
async def test_silence_is_forgiven_once(errors: list[WinnowError], there: bool) -> None:
    fake = FakeSearcher([reading("a")])
    node = Node("a", OneShardNode(fake), fake.go_on.wait)  # type: ignore[arg-type]
    assert not node.is_present(2)
    node.record_reply(await node.content.report(Deadline.after(60)))
    for error in errors:
        node.record_failure(error)
    assert node.is_present(2) is there
