"""A split that is cut, and whose node is restarted, at any step: no write is lost or forked."""

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from live_shards import built
from live_writes import delete, digested, put
from moving_shards import merged, opened, shard_info, store

from winnow.content_node.live.custody import Custody, Role
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.splitting import parent as splitting
from winnow.content_node.splitting.parent import LocalParent, follow_parent
from winnow.content_node.splitting.write_half import write_half
from winnow.content_node.transfer.batches import next_batch
from winnow.content_node.transfer.following import Handover, LogBatch
from winnow.deadline import Deadline
from winnow.domain.partition import holds
from winnow.errors import ArtefactError, UnavailableError
from winnow.storage.partial import restored_directory

PARENT, HALVES = 0, (1, 2)
IDS = "abcdefgh"
TEXTS = {"a": "one two", "b": "two two three", "c": "four", "d": "five one"}


class StoppedError(Exception):
    """The follower was stopped after a failure, as by a kill of its node."""


class History:
    """A shard that takes writes and is split by a node whose process may end at any call.

    A second shard gets the same writes and is not split.
    """

    def __init__(self, root: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rng, self._monkeypatch = rng, monkeypatch
        for name in ("split", "whole"):
            (root / name).mkdir()
        self.directories = {
            PARENT: built(root / "split", TEXTS),
            **{half: root / str(half) for half in HALVES},
        }
        self.shards = {PARENT: opened(self.directories[PARENT])}
        self.whole = opened(built(root / "whole", TEXTS))
        self.stored: dict[str, str | None] = dict(TEXTS)
        self.acknowledged = self._count = 0

    @property
    def parent(self) -> LiveShard:
        return self.shards[PARENT]

    async def write(self) -> None:
        self._count += 1
        identifier = self._rng.choice(IDS)
        text = self._rng.choice([f"text {self._count}", f"one text {self._count}", None])
        if text is None and self.stored.get(identifier) is None:
            return
        write = delete(identifier) if text is None else put(identifier, text)
        with contextlib.suppress(UnavailableError):
            sequence = await store(self._owner(identifier), write)
            await store(self.whole, write)
            self.acknowledged = max(self.acknowledged, sequence)
            self.stored[identifier] = text

    async def make(self, half: int | None = None) -> None:
        half = half if half is not None else self._rng.choice(HALVES)
        if half in self.shards:
            return
        with restored_directory(self.directories[half]) as content:
            shard = self.directories[PARENT]
            write_half(self.parent.directory, shard, half, content, following=True)
        self.parent.hold_log(str(half), self.parent.merged)
        self.shards[half] = opened(self.directories[half])

    async def follow(self, half: int | None = None, calls: int | None = None) -> None:
        """Follows the parent until the process ends, or the half has taken over."""
        half = half if half is not None else self._rng.choice(HALVES)
        if half not in self.shards or self.shards[half].custody.role is not Role.FOLLOWER:
            return
        calls = calls if calls is not None else self._rng.randint(0, 6)
        self._monkeypatch.setattr(splitting, "LocalParent", cut_parent(calls, self._rng))

        async def stop(_seconds: float) -> None:
            raise StoppedError

        follower = follow_parent(self.shards[half], shard_info(half), self._live)
        self._monkeypatch.setattr(follower, "_sleep", stop)
        try:
            await follower.run()
        except StoppedError:
            return
        except ArtefactError:  # the parent was started again, and trimmed writes that it lacks
            await self.shards.pop(half).close()
            shutil.rmtree(self.directories[half])

    async def restart(self) -> None:
        number = self._rng.choice(list(self.shards))
        await self.shards[number].close()
        self.shards[number] = opened(self.directories[number])

    async def merge(self) -> None:
        number = self._rng.choice(list(self.shards))
        if self.shards[number].sequence > self.shards[number].merged:
            await merged(self.shards[number], self.directories[number])

    async def close(self) -> None:
        for shard in (*self.shards.values(), self.whole):
            await shard.close()

    def _live(self, number: int) -> LiveShard:
        if number not in self.shards:
            raise UnavailableError("the shard is still loading")
        return self.shards[number]

    def _owner(self, passage_id: str) -> LiveShard:
        if self.parent.custody.takes_writes:
            return self.parent
        return self._live(next(half for half in HALVES if holds(half, 1, passage_id)))


def cut_parent(calls: int, rng: random.Random) -> Callable[[LiveShard, int], LocalParent]:
    """A parent whose process ends after a few calls, before or after their effect."""
    left = calls

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise UnavailableError("the process has ended")

    class Cut(LocalParent):
        async def hand_over(self) -> Handover:
            count()
            handed_over = await super().hand_over()
            count()
            return handed_over

        async def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
            while True:
                count()
                batch = await next_batch(self._shard, after)
                some = batch.writes[: rng.randint(1, 3)]
                yield replace(batch, writes=some)
                after += len(some)

    return Cut


async def words(*shards: LiveShard) -> tuple[Counter[int], int, int]:
    """The changes of word counts by the writes of shards together."""
    total: Counter[int] = Counter()
    passages = tokens = 0
    for shard in shards:
        changes = await shard.changes(Deadline.after(60))
        by = np.asarray(changes.by)
        total.update(dict(zip(changes.ids.tolist(), by.tolist(), strict=True)))
        passages, tokens = passages + changes.passages, tokens + changes.tokens
    return Counter({token: count for token, count in total.items() if count}), passages, tokens


@pytest.mark.parametrize("seed", range(12))
async def test_an_interrupted_split_has_one_owner_of_each_passage_with_every_write(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    history = History(tmp_path, rng, monkeypatch)
    for _ in range(10):
        await history.write()
    steps = [history.make, history.follow, history.restart, history.merge, *[history.write] * 4]
    for _ in range(60):
        await rng.choice(steps)()
        if any(shard.custody.takes_writes for n, shard in history.shards.items() if n in HALVES):
            assert not history.parent.custody.takes_writes
    for half in HALVES * 3:
        await history.make(half)
        await history.follow(half, calls=100)
    assert history.parent.custody == Custody(Role.FORMER_OWNER)
    halves = [history.shards[half] for half in HALVES]
    assert [each.custody for each in halves] == [Custody(moves=1)] * 2
    assert min(each.sequence for each in halves) >= history.parent.sequence
    assert max(each.sequence for each in halves) == history.acknowledged
    expected = [put(name, text) for name, text in history.stored.items() if text is not None]
    for number, shard in zip(HALVES, halves, strict=True):
        own = [digested(each) for each in expected if holds(number, 1, each.id)]
        assert all(await shard.find_unchanged(own, Deadline.after(60)))
        assert shard.view.passages == len(own)
    assert await words(*halves) == await words(history.whole)
    await history.close()
