"""A move that is cut, and whose nodes are restarted, at any step: no write is lost or forked."""

import contextlib
import random
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
from live_shards import built
from live_writes import delete, digested, put
from moving_shards import opened, store

from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.transfer.following import Handover, LogBatch, LogFollower
from winnow.deadline import Deadline
from winnow.errors import UnavailableError

TEXTS = {"a": "one two", "b": "two two three", "c": "four"}


class StoppedError(Exception):
    """The follower was stopped after a failure, as by a kill of its node."""


class CutLink:
    """The owner's end of a link that breaks after a few calls, before or after their effect."""

    def __init__(self, shard: LiveShard, calls: int, rng: random.Random) -> None:
        self._shard, self._calls, self._rng = shard, calls, rng

    async def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
        while True:
            self._count_call()
            writes = self._shard.logged_after(after, self._rng.randint(1, 3))
            yield LogBatch(self._shard.log_id, writes, self._shard.sequence)
            after += len(writes)

    async def hand_over(self) -> Handover:
        self._count_call()
        sequence = await self._shard.hand_over("new")
        self._count_call()  # the reply may be lost
        return Handover(sequence, self._shard.log_id)

    def _count_call(self) -> None:
        self._calls -= 1
        if self._calls < 0:
            raise UnavailableError("the link is cut")


async def follow(copy: LiveShard, owner: LiveShard, calls: int, rng: random.Random) -> None:
    """Follows the owner until the link breaks or the copy has taken over."""

    @contextlib.asynccontextmanager
    async def open_owner(node: str) -> AsyncIterator[CutLink]:
        assert node == "old"
        yield CutLink(owner, calls, rng)

    async def stop(_seconds: float) -> None:
        raise StoppedError

    with contextlib.suppress(StoppedError):
        await LogFollower(copy, open_owner, stop).run()


@pytest.mark.parametrize("seed", range(12))
async def test_an_interrupted_move_has_one_owner_with_every_acknowledged_write(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    directories = {"old": built(tmp_path, TEXTS), "new": tmp_path / "copy"}
    shutil.copytree(directories["old"], directories["new"])
    write_custody(directories["new"], Custody(Role.FOLLOWER, "old"))
    shards = {name: opened(directory) for name, directory in directories.items()}
    stored: dict[str, str | None] = dict(TEXTS)
    acknowledged = 0
    for step in range(40):
        match rng.choice(["write", "write", "follow", "restart"]):
            case "write":
                name = rng.choice(["old", "new"])
                text = rng.choice([f"text {step}", None])
                identifier = rng.choice("abcd")
                if text is None and stored.get(identifier) is None:
                    continue
                write = delete(identifier) if text is None else put(identifier, text)
                with contextlib.suppress(UnavailableError):
                    acknowledged = await store(shards[name], write)
                    stored[identifier] = text
            case "follow":
                await follow(shards["new"], shards["old"], rng.randint(0, 6), rng)
            case "restart":
                name = rng.choice(["old", "new"])
                await shards[name].close()
                shards[name] = opened(directories[name])
        owners = [name for name, shard in shards.items() if shard.custody.takes_writes]
        assert len(owners) <= 1
    await follow(shards["new"], shards["old"], 100, rng)
    assert shards["new"].custody == Custody(moves=1)
    assert shards["old"].custody == Custody(Role.FORMER_OWNER, "new")
    assert shards["new"].sequence == acknowledged
    expected = [put(name, text) for name, text in stored.items() if text is not None]
    found = await shards["new"].find_unchanged(list(map(digested, expected)), Deadline.after(60))
    assert all(found)
    assert shards["new"].view.passages == len(expected)
    for shard in shards.values():
        await shard.close()
