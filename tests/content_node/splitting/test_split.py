"""A shard is split in two while it is served, and takes writes."""

import shutil
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog
from assigned_nodes import AssignedNode, Nodes, briefly
from fake_journal import FakeJournal
from tenacious import LONG

from winnow.content_node.composing import assigned_shards
from winnow.content_node.journal import composing
from winnow.content_node.live.custody import CUSTODY_FILE, Custody, read_custody
from winnow.content_node.splitting.write_half import write_half
from winnow.deadline import Deadline
from winnow.domain.partition import halves_of, holds
from winnow.domain.shard import NodeReport, shard_name
from winnow.domain.write import Outcome, Write, Written

HALVES = (7, 8)
"""The halves of shard 2 of three."""


@pytest.fixture
def tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault stays as it is, however late a test looks: no second attempt replaces it."""
    monkeypatch.setattr(assigned_shards, "_RETRY_AFTER", LONG)


def deletions(shard: int, count: int, version: int = 1) -> list[Write]:
    """Deletions of passages that the shard lacks, with a version: they are stored."""
    ids = [f"id-{n}" for n in range(100 * count) if holds(shard, 3, f"id-{n}")]
    return [Write(each, version) for each in ids[:count]]


async def write(node: AssignedNode, shard: int, writes: list[Write]) -> list[Written]:
    return await node.shards.served.searcher(shard).writing.writer.write(writes, Deadline.after(60))


async def passages(node: AssignedNode) -> dict[int, int]:
    return {info.shard: info.passages for info in (await node.report()).infos}


class Rounds:
    """Counts how often a node has followed the assignment."""

    def __init__(self) -> None:
        self.count = 0

    async def sleep(self, seconds: float) -> None:
        self.count += 1
        await briefly(seconds)

    async def pass_by(self, node: AssignedNode) -> NodeReport:
        """Waits until the node has followed the assignment some more times."""
        after = self.count + 3
        return await node.reports(lambda _: self.count >= after)


async def test_halves_have_the_passages_and_the_writes_of_their_shard(
    nodes: Nodes, tmp_path: Path
) -> None:
    a = await nodes.start("a", feed=True)
    before = await passages(a)
    written = await write(a, 2, deletions(2, 9))
    nodes.assign({}, (0, 1, *HALVES))
    await a.serves(0, 1, *HALVES)
    after = await passages(a)
    assert sum(after[half] for half in HALVES) == before[2]
    assert min(after[half] for half in HALVES) > 0
    infos = {info.shard: info for info in (await a.report()).infos}
    assert [infos[half].sequence for half in HALVES] == [9, 9]
    assert [infos[half].writes_elsewhere for half in HALVES] == [False, False]
    for half in HALVES:  # the deletions are known: an older version does not count
        again = await write(a, half, [each for each in deletions(2, 9) if holds(half, 3, each.id)])
        assert {each.outcome for each in again} == {Outcome.UNCHANGED}
        (new,) = await write(a, half, deletions(half, 1, version=2))
        assert (new.outcome, new.sequence) == (Outcome.STORED, 10)
        assert new.log_id == f"{written[0].log_id}/{half}"
    await a.reports(lambda _: not (tmp_path / "a" / shard_name(2, 3)).exists())


async def test_the_halves_appear_at_once_and_before_their_shard_goes(nodes: Nodes) -> None:
    """A front polls at any moment, and must never find a part of the index nowhere."""
    a = await nodes.start("a", feed=True)
    seen = set()

    def settled(report: NodeReport) -> bool:
        shards = frozenset(info.shard for info in report.infos)
        seen.add(shards)
        return shards == {0, 1, *HALVES}

    nodes.assign({}, (0, 1, *HALVES))
    await a.reports(settled)
    assert seen <= {
        frozenset({0, 1, 2}),
        frozenset({0, 1, 2, *HALVES}),
        frozenset({0, 1, *HALVES}),
    }


async def test_a_half_can_be_assigned_to_another_node(nodes: Nodes, tmp_path: Path) -> None:
    first, second = HALVES
    a, b = await nodes.start("a", feed=True), await nodes.start("b", feed=True)
    await write(a, 2, deletions(2, 3))
    nodes.assign({7: "b"}, (0, 1, *HALVES))
    await b.serves(first)
    await a.serves(0, 1, second)
    (new,) = await write(b, first, deletions(first, 1, version=2))
    assert new.sequence == 4
    assert read_custody(tmp_path / "b" / shard_name(first, 3)) == Custody(moves=2)


async def test_a_node_that_is_started_again_goes_on_with_a_split(
    nodes: Nodes, tmp_path: Path
) -> None:
    async with AsyncExitStack() as first:
        a = await nodes.start("a", first, feed=True)
        await write(a, 2, deletions(2, 3))
        nodes.assign({}, (0, 1, *HALVES))
        half = tmp_path / "a" / shard_name(HALVES[0], 3)
        await a.reports(lambda _: half.exists())
    with structlog.testing.capture_logs() as logs:
        a = await nodes.start("a", feed=True)
    loaded = [line["shard"] for line in logs if line["event"] == "shard loaded"]
    assert loaded == sorted(loaded, reverse=True)  # a half may have writes that 2 lacks
    nodes.assign({}, (0, 1, *HALVES))  # with its new address
    await a.serves(0, 1, *HALVES)


async def test_halves_are_split_again(nodes: Nodes) -> None:
    quarters = halves_of(HALVES[0], 3)
    a = await nodes.start("a", feed=True)
    before = await passages(a)
    await write(a, 2, deletions(2, 3))
    nodes.assign({}, (0, 1, *quarters, HALVES[1]))  # two splits at once
    await a.serves(0, 1, *quarters, HALVES[1])
    assert sum((await passages(a)).values()) == sum(before.values())
    (new,) = await write(a, quarters[1], deletions(quarters[1], 1, version=2))
    assert new.sequence == 4


async def test_copies_without_writes_are_split_by_one_node(nodes: Nodes) -> None:
    a, b = [await nodes.start(name, feed=False) for name in "ab"]
    nodes.assign({2: "ab"})
    await b.serves(2)
    nodes.assign({7: "ab", 8: "ab"}, (0, 1, *HALVES))
    await a.serves(0, 1, *HALVES)
    await b.serves(*HALVES)
    reports = [await each.report() for each in (a, b)]
    first, second = (
        {i.shard: i.replica_identity for i in report.infos if i.shard in HALVES}
        for report in reports
    )
    assert first == second


@pytest.mark.usefixtures("tried_once")
async def test_a_half_that_cannot_be_written_is_a_fault_and_the_shard_serves_on(
    nodes: Nodes, tmp_path: Path
) -> None:
    a = await nodes.start("a", feed=True)
    in_the_way = tmp_path / "a" / f"{shard_name(HALVES[0], 3)}.partial"
    in_the_way.mkdir()
    (in_the_way / "mine").touch()
    nodes.assign({}, (0, 1, *HALVES))
    report = await a.reports(lambda report: bool(report.faults))
    assert "mine" in str(report.faults[0].error)
    assert {info.shard for info in report.infos} == {0, 1, 2}
    (new,) = await write(a, 2, deletions(2, 1))
    assert new.outcome is Outcome.STORED


async def test_a_half_made_without_writes_gets_those_that_its_shard_takes_after_a_restart(
    nodes: Nodes, tmp_path: Path
) -> None:
    """The node was stopped before both halves were there, and started again with --feed."""
    first, _ = HALVES
    async with AsyncExitStack() as before:
        await nodes.start("a", before, feed=False)
        nodes.assign({})
    parent, half = (tmp_path / "a" / shard_name(each, 3) for each in (2, first))
    half.mkdir()
    write_half(parent, parent, first, half, following=False)
    a = await nodes.start("a", feed=True)
    writes = deletions(first, 3)
    await write(a, 2, writes)
    nodes.assign({}, (0, 1, *HALVES))
    await a.serves(0, 1, *HALVES)
    assert {each.outcome for each in await write(a, first, writes)} == {Outcome.UNCHANGED}


@pytest.mark.usefixtures("tried_once")
async def test_a_half_for_another_node_that_cannot_be_written_stays_a_fault(
    nodes: Nodes, tmp_path: Path
) -> None:
    rounds = Rounds()
    a = await nodes.start("a", sleep=rounds.sleep, feed=True)
    await nodes.start("b", feed=True)
    in_the_way = tmp_path / "a" / f"{shard_name(HALVES[0], 3)}.partial"
    in_the_way.mkdir()
    (in_the_way / "mine").touch()
    nodes.assign({7: "b"}, (0, 1, *HALVES))
    await a.reports(lambda report: HALVES[0] in {fault.shard for fault in report.faults})
    report = await rounds.pass_by(a)
    assert HALVES[0] in {fault.shard for fault in report.faults}


async def test_halves_that_are_not_wanted_any_more_go_before_both_are_there(
    nodes: Nodes, tmp_path: Path
) -> None:
    a = await nodes.start("a", feed=True)
    await write(a, 2, deletions(2, 3))
    first, second = (tmp_path / "a" / shard_name(half, 3) for half in HALVES)
    in_the_way = second.with_name(f"{second.name}.partial")
    in_the_way.mkdir()
    (in_the_way / "mine").touch()
    nodes.assign({}, (0, 1, *HALVES))
    await a.reports(lambda report: first.exists() and bool(report.faults))
    nodes.assign({})
    await a.reports(lambda _: not first.exists())


async def test_an_unfinished_half_is_not_shown_while_its_shard_cannot_be_loaded(
    nodes: Nodes, tmp_path: Path
) -> None:
    """A front that changed to it would not go back to the shard, which has all writes."""
    async with AsyncExitStack() as before:
        a = await nodes.start("a", before, feed=True)
        await write(a, 2, deletions(2, 3))
        nodes.assign({})
    parent, half = (tmp_path / "a" / shard_name(each, 3) for each in (2, HALVES[0]))
    half.mkdir()
    write_half(parent, parent, HALVES[0], half, following=True)
    (parent / "live" / CUSTODY_FILE).write_text("damaged")
    rounds = Rounds()
    a = await nodes.start("a", sleep=rounds.sleep, feed=True)
    report = await rounds.pass_by(a)
    assert {info.shard for info in report.infos} == {0, 1}


@pytest.mark.usefixtures("tried_once")
async def test_a_shard_is_not_split_without_room_for_its_halves(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk would stop the writes of the other shards, too."""
    usage = SimpleNamespace(free=1_000)
    a = await nodes.start("a", feed=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    nodes.assign({}, (0, 1, *HALVES))
    report = await a.reports(lambda report: bool(report.faults))
    assert "the disk has 0 MB of free space" in str(report.faults[0].error)


async def test_replicas_that_follow_a_journal_are_split_on_every_node(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals: dict[int, FakeJournal] = defaultdict(FakeJournal)
    monkeypatch.setattr(composing, "open_journal", lambda _, __, shard, ___: journals[shard])
    url = "nats://127.0.0.1:4222"
    both = dict.fromkeys((2, *HALVES), "ab")
    a, b = [await nodes.start(name, feed=True, journal=url) for name in "ab"]
    nodes.assign(both)
    await b.serves(2)
    await write(a, 2, deletions(2, 9))
    nodes.assign(both, (0, 1, *HALVES))
    await a.serves(0, 1, *HALVES)
    await b.serves(*HALVES)
    for half in HALVES:
        (written,) = await write(a, half, deletions(half, 1, version=2))
        assert written.log_id == f"{journals[2].id}/{half}"
        await b.reports(
            lambda report, written=written, half=half: (
                (half, written.sequence)  # type: ignore[misc]
                in [(info.shard, info.sequence) for info in report.infos]
            )
        )
    assert set(journals) == {0, 1, 2}
