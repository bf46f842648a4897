"""Kills a process that feeds a shard, again and again, and looks at what is left.

    python -m bench.kills --kills 300

Every write that was acknowledged must be there, and no call may be there in part.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry

from winnow.content_node.live.entry import Logged
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.write import EncodedPassage, Write
from winnow.text.tokenizer import Tokens

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "shard-format-3"
_DIMENSION = 8
_NAMES = 40
_CALLERS = 4
_MOST = 30
"""Calls that are acknowledged before a kill, at the most."""
_OF_A_LIFE = 100_000
"""Calls that no life gets to."""


def call(stamp: int) -> list[Write]:
    """The writes of a call: every one of them changes the shard, whatever was there before."""
    first, other = f"p{stamp % _NAMES}", f"q{stamp % _NAMES}"
    return [_put(first, stamp), _put(other, stamp), Write(first)]


def _put(identifier: str, stamp: int) -> Write:
    text = f"{stamp} " + "word " * (stamp % 300)
    vector = np.zeros(_DIMENSION, np.float32)
    vector[stamp % _DIMENSION] = 1
    tokens = Tokens((stamp % 900,) * 5, ((0, 1),) * 5)
    return Write(
        identifier, None, EncodedPassage(Passage(identifier, "", text), (), tokens, vector)
    )


def open_fed(shard: Path) -> LiveShard:
    """The shard as a node opens it."""
    return open_live(
        shard,
        lambda _: open_shard(shard, ef=64),
        lambda _: WriteLimits(0, 1, _DIMENSION, 1_000, 10**9),
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )


@dataclass
class Kills:
    """What was acknowledged so far, and what was found."""

    shard: Path
    chance: random.Random
    acknowledged: dict[int, int] = field(default_factory=dict)
    """Calls, each with the sequence number of its last write."""
    kills: int = 0
    unacknowledged: int = 0
    """Calls that were there, and nobody had been told."""

    def run(self, kills: int) -> None:
        """Kills so many lives, and checks after each."""
        command = [sys.executable, "-m", "bench.kills", "--lives", str(self.shard)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as lives:
            assert lives.stdin is not None
            assert lives.stdout is not None
            try:
                for _ in range(kills):
                    lives.stdin.write(f"{(self.kills + 1) * _OF_A_LIFE}\n")
                    lives.stdin.flush()
                    self._kill_one(iter(lives.stdout))
                    self.check()
            except BaseException:
                lives.kill()
                raise
            finally:
                lives.stdin.close()

    def _kill_one(self, said: Iterator[str]) -> None:
        pid = int(next(said))
        try:
            self._listen(pid, said)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        self.kills += 1

    def _listen(self, pid: int, said: Iterator[str]) -> None:
        """Kills it sooner or later, and notes all that it acknowledged."""
        left = self.chance.randint(0, _MOST)
        if not left:
            os.kill(pid, signal.SIGKILL)
        for line in said:
            if line == "dead\n":
                break
            stamp, sequence = map(int, line.split())
            self.acknowledged[stamp] = sequence
            left -= 1
            if not left:
                os.kill(pid, signal.SIGKILL)
        else:
            raise AssertionError("the lives have ended")

    def check(self) -> None:
        """Compares the log with all that was acknowledged."""
        found: list[Logged] = []
        open_log(self.shard, lambda _: found.append).close()
        size = len(call(0))
        calls = [found[at : at + size] for at in range(0, len(found), size)]
        there = {int(own[0].put.text.split()[0]): own for own in calls if own[0].put is not None}
        assert len(there) == len(calls)
        for stamp, own in there.items():
            assert list(map(_said, own)) == list(map(_said, call(stamp))), f"call {stamp} is torn"
        for stamp, sequence in self.acknowledged.items():
            assert there[stamp][-1].sequence == sequence, f"call {stamp} was acknowledged"
        self.unacknowledged = len(there) - len(self.acknowledged)

    def check_served(self) -> None:
        """Compares what is served with what the log says in its order."""
        found: list[Logged] = []
        open_log(self.shard, lambda _: found.append).close()
        expected = {"a": 0, "b": 0, "c": 0}
        for write in found:
            expected.pop(write.id, None)
            if write.put is not None:
                expected[write.id] = write.sequence
        live = open_fed(self.shard)
        view = live.view
        served: dict[str, int] = {}
        for placed in view.placed:
            alive = placed.alive if placed.alive is not None else np.ones(placed.segment.rows)
            served.update(placed.segment.named(np.flatnonzero(alive).tolist()))
        assert served == expected
        asyncio.run(live.close())


def _said(write: Write | Logged) -> tuple[str, str | None]:
    put = write.put
    if isinstance(put, EncodedPassage):
        return write.id, put.passage.text
    return write.id, None if put is None else put.text


async def _live(shard: Path, stamps: Iterator[int]) -> None:
    """Feeds until it is killed."""
    live = open_fed(shard)

    async def feed() -> None:
        for stamp in stamps:
            written = await live.write(call(stamp), Deadline.after(60))
            os.write(1, f"{stamp} {written[-1].sequence}\n".encode())

    await asyncio.gather(*(feed() for _ in range(_CALLERS)))


def _lives(shard: Path) -> None:
    """One life after the other, each a fork: all is imported then, and no thread was begun."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.write(1, f"{os.getpid()}\n".encode())
            sys.stdout = sys.stderr  # where logs go, too
            asyncio.run(_live(shard, count(int(line))))
        os.waitpid(pid, 0)
        os.write(1, b"dead\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="kills (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of what is left to chance (default 0)")
    parser.add_argument("--lives", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.lives:
        _lives(arguments.lives)
        return
    with tempfile.TemporaryDirectory() as directory:
        shard = Path(shutil.copytree(GOLDEN, Path(directory) / "shard"))
        kills = Kills(shard, random.Random(arguments.seed))
        kills.run(arguments.kills)
        kills.check_served()
    told = len(kills.acknowledged)
    print(f"{kills.kills} kills, {told} calls acknowledged and all there, none in part;")
    print(f"{kills.unacknowledged} more were there of which nobody had been told")


if __name__ == "__main__":
    main()
