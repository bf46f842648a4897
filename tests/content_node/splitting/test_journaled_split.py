"""Replicas that follow a journal are split at the same entry, and their halves follow it on."""

import errno
import random
import shutil
from functools import partial
from pathlib import Path

import pytest
from fake_journal import FakeJournal
from live_shards import built
from live_writes import delete, digested, put
from moving_shards import merged, opened, shard_info
from prometheus_client import CollectorRegistry
from tenacious import happens

from winnow.content_node.journal import composing
from winnow.content_node.journal.composing import ShardWritePath
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live import write_store
from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.live.reading import log_path, read_writes
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.splitting.parent import follow_parent
from winnow.content_node.splitting.write_half import write_half
from winnow.deadline import Deadline
from winnow.domain.partition import holds
from winnow.domain.write import Write, Written
from winnow.errors import ArtefactError, UnavailableError
from winnow.shard_writer import CountingShardWriter
from winnow.storage.partial import restored_directory

PARENT, HALVES = 0, (1, 2)
IDS = "abcdefgh"
TEXTS = {"a": "one two", "b": "two two three", "c": "four", "d": "five one"}


class Node:
    """A node with a replica of the shard, and of its halves once they are made."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.directories = {PARENT: built(root, TEXTS), **{n: root / str(n) for n in HALVES}}
        self.shards: dict[int, LiveShard] = {}
        self.fed: dict[int, ShardWritePath] = {}
        self.writers: dict[int, CountingShardWriter] = {}
        self.changes: list[FileChange] = []
        self.open(PARENT)

    def open(self, number: int) -> None:
        live = self.shards[number] = opened(self.directories[number])
        fed = self.fed[number] = ShardWritePath(
            journal="fake",
            shard=live,
            info=shard_info(number),
            encoding_fingerprint="encoding",
            metrics=JournalMetrics(CollectorRegistry()),
        )
        self.writers[number] = fed.start(self._tell)

    async def _tell(self, change: FileChange) -> None:
        self.changes.append(change)

    async def restart(self) -> None:
        for number in list(self.shards):
            await self.fed[number].close()
            self.open(number)

    def owner(self, passage_id: str) -> int:
        """The number of the shard that takes the writes of a passage."""
        if self.shards[PARENT].takes_writes:
            return PARENT
        return next(half for half in HALVES if holds(half, 1, passage_id))

    async def write(self, *writes: Write) -> list[Written]:
        number = self.owner(writes[0].id)
        if number not in self.writers:
            raise UnavailableError("the half is not there yet")
        return await self.writers[number].write(writes, Deadline.after(60))

    async def merge(self, number: int) -> None:
        live = self.shards.get(number)
        if live is not None and live.sequence > live.merged:
            await merged(live, self.directories[number])

    async def make(self, half: int) -> None:
        if half in self.shards:
            return
        parent = self.shards[PARENT]
        with restored_directory(self.directories[half]) as content:
            shard = self.directories[PARENT]
            write_half(parent.directory, shard, half, content, following=True)
        parent.hold_log(str(half), parent.merged)
        self.open(half)

    async def take_over(self, half: int) -> None:
        """Lets a half follow its shard until it takes the writes, and then the journal."""
        live = self.shards[half]
        if live.custody.role is not Role.FOLLOWER:
            return
        try:
            await follow_parent(live, shard_info(half), self._live).run()
        except ArtefactError:  # the shard was started again, and trimmed writes that the half lacks
            await self.fed.pop(half).close()
            del self.shards[half], self.writers[half]
            shutil.rmtree(self.directories[half])
            await self.make(half)
            await self.take_over(half)
        else:
            self.fed[half].follow_journal()

    async def take_over_if_made(self, half: int) -> None:
        if self.shards.keys() >= set(HALVES):
            await self.take_over(half)

    async def split(self) -> None:
        for half in HALVES:
            await self.make(half)
        for half in HALVES:
            await self.take_over(half)

    def _live(self, number: int) -> LiveShard:
        if number not in self.shards:
            raise UnavailableError("the shard is still loading")
        return self.shards[number]

    async def close(self) -> None:
        for fed in self.fed.values():
            await fed.close()


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> FakeJournal:
    journal = FakeJournal()
    monkeypatch.setattr(composing, "open_journal", lambda *_: journal)
    return journal


@pytest.fixture
async def nodes(tmp_path: Path, journal: FakeJournal) -> list[Node]:
    return [Node(tmp_path / name) for name in "ab"]


def own_writes(half: int) -> list[Write]:
    return [put(name, f"new text of {name}") for name in IDS if holds(half, 1, name)]


async def test_every_replica_ends_at_the_entry_that_splits_the_shard(nodes: list[Node]) -> None:
    a, b = nodes
    for name in IDS:
        await a.write(put(name, f"text of {name}"))
    await a.split()
    await happens(lambda: not b.shards[PARENT].takes_writes)
    assert a.shards[PARENT].sequence == b.shards[PARENT].sequence == len(IDS)
    with pytest.raises(UnavailableError, match="split in two: try again"):
        await b.writers[PARENT].write([put("a", "late")], Deadline.after(60))
    for half in HALVES:
        assert a.shards[half].custody == Custody(moves=1)
        for written in await a.write(*own_writes(half)):
            assert written.log_id == f"{a.shards[PARENT].log_id}/{half}"
    for node in nodes:
        assert not node.changes
        await node.close()


async def test_halves_of_all_replicas_number_writes_alike_wherever_they_were_made(
    nodes: list[Node],
) -> None:
    a, b = nodes
    await a.write(*[put(name, f"text of {name}") for name in IDS])
    await a.merge(PARENT)
    await a.split()
    await a.write(*own_writes(1))
    await a.write(*own_writes(2))
    await b.split()  # from its own files, and after later writes
    await b.write(*own_writes(1)[:1])  # changes nothing
    (again,) = await b.write(put(own_writes(2)[0].id, "newer text"))
    await happens(lambda: a.shards[2].sequence == again.sequence)
    await happens(lambda: a.shards[1].journal_position == b.shards[2].journal_position)
    await happens(lambda: b.shards[1].journal_position == b.shards[2].journal_position)
    for live in (a.shards[1], b.shards[1]):  # the log has an entry before the view
        await happens(lambda live=live: live.sequence == live._log.last)  # type: ignore[misc]
    for half in HALVES:
        assert a.shards[half].sequence == b.shards[half].sequence
        assert a.shards[half].journal_position == b.shards[half].journal_position
        assert log(a, half)[-5:] == log(b, half)[-5:]
    for node in nodes:
        await node.close()


def log(node: Node, half: int) -> list[tuple[int, str]]:
    writes = read_writes(log_path(node.directories[half]), node.shards[half].trimmed)
    return [(each.sequence, each.id) for each in writes]


async def test_a_half_is_split_again_and_the_other_half_goes_on(nodes: list[Node]) -> None:
    a, b = nodes
    await a.split()
    await b.split()
    await a.shards[1].hand_over("")
    await happens(lambda: not b.shards[1].takes_writes)
    for node in nodes:
        assert [node.shards[half].takes_writes for half in HALVES] == [False, True]
    for node in nodes:
        await node.close()


async def test_a_half_takes_over_although_the_other_half_is_on_another_node(
    nodes: list[Node],
) -> None:
    a, b = nodes
    await a.split()
    await happens(lambda: not b.shards[PARENT].takes_writes)
    await b.make(1)
    await b.take_over(1)
    assert b.shards[1].takes_writes
    for node in nodes:
        await node.close()


async def test_a_former_owner_that_was_restarted_refuses_calls_at_once(nodes: list[Node]) -> None:
    """Nothing would deliver the result of an entry that it publishes."""
    a, b = nodes
    await a.split()
    await happens(lambda: not b.shards[PARENT].takes_writes)
    await b.restart()
    with pytest.raises(UnavailableError, match="split in two"):
        await b.writers[PARENT].find_unchanged(
            [digested(put("a", TEXTS["a"]))], Deadline.after(86_400)
        )
    assert await b.shards[PARENT].hand_over("") == b.shards[PARENT].sequence
    for node in nodes:
        await node.close()


async def test_a_disk_that_is_full_when_the_shard_ends_is_tried_again(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = nodes
    failures = [OSError(errno.ENOSPC, "No space left on device")]

    def write_or_fail(directory: Path, custody: Custody) -> None:
        if directory == b.directories[PARENT] and failures:
            raise failures.pop()
        write_custody(directory, custody)

    monkeypatch.setattr(write_store, "write_custody", write_or_fail)
    await a.split()
    await happens(lambda: not b.shards[PARENT].takes_writes)
    assert not failures
    for node in nodes:
        assert not node.changes
        await node.close()


@pytest.mark.parametrize("seed", range(8))
async def test_no_write_is_lost_or_undone_when_nodes_restart_during_a_split(
    nodes: list[Node], journal: FakeJournal, seed: int
) -> None:
    """A write that failed may have been stored: its entry may have reached the journal."""
    rng = random.Random(seed)
    possible: dict[str, set[str | None]] = {name: {TEXTS.get(name)} for name in IDS}
    count = 0

    async def write(node: Node) -> None:
        nonlocal count
        count += 1
        name = rng.choice(IDS)
        text = rng.choice([f"text {count}", f"one text {count}", None])
        before, possible[name] = possible[name], {text}
        try:
            await node.write(delete(name) if text is None else put(name, text))
        except UnavailableError:
            possible[name] |= before

    def step(node: Node) -> list[object]:
        make = partial(node.make, rng.choice(HALVES))
        merge = partial(node.merge, rng.choice((PARENT, *HALVES)))
        take_over = partial(node.take_over_if_made, rng.choice(HALVES))
        return [make, merge, node.restart, take_over, *[partial(write, node)] * 5]

    for _ in range(50):
        node = rng.choice(nodes)
        await rng.choice(step(node))()  # type: ignore[operator]
    for node in nodes:
        await node.split()
    end = len(journal.entries)
    for number in HALVES:
        own = {name: texts for name, texts in possible.items() if holds(number, 1, name)}
        for node in nodes:
            await happens(partial(reached, node.shards[number], end))
            await has_only(node.shards[number], own)
        a, b = (node.shards[number] for node in nodes)
        assert (a.sequence, a.log_id) == (b.sequence, b.log_id)
    for node in nodes:
        assert not node.changes
        await node.close()


async def has_only(live: LiveShard, possible: dict[str, set[str | None]]) -> None:
    """Asserts that a shard has one of the possible texts of each passage, and nothing else."""
    stored = 0
    for name, texts in possible.items():
        own = [digested(put(name, text)) for text in texts if text is not None]
        found = await live.find_unchanged_locally(own, Deadline.after(60)) if own else []
        found = [each for each in found if each is not None]
        assert found or None in texts
        stored += len(found)
    assert live.view.passages == stored


def reached(live: LiveShard, entry: int) -> bool:
    """Whether a shard has applied an entry of the journal."""
    return int(live.journal_position.partition(" ")[0] or 0) >= entry
