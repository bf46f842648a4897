"""Many lives of many shards, one after the other, and what they showed."""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.common.shards import build_shard
from bench.crashes.life import Life, first_texts, live, points_in_turn
from bench.crashes.made_up import DIMENSION, passage
from bench.crashes.model import Model
from winnow.content_node.merging.names import LIVE, newest_first
from winnow.faultpoints import POINTS

_LIVES = 24
"""Of each shard; then comes another one."""
_DERIVED = ("graph.hnsw", "tokens.npy", "postings.npy", "counts.npy")


@dataclass(slots=True)
class Shown:
    """What was seen so far."""

    kills: Counter[str] = field(default_factory=Counter)
    """By the point at which a process was killed."""
    shards: int = 0
    lives: int = 0
    acknowledged: int = 0
    """Writes."""
    merges: int = 0
    checks: int = 0
    """Times that a shard was compared with the dictionary."""

    def add(self, life: Life) -> None:
        """Counts a life."""
        self.kills.update(life.kills)
        self.lives += 1
        self.acknowledged += life.acknowledged
        self.merges += life.merges
        self.checks += life.checks


async def try_often(
    kills: int, seconds: float, rng: random.Random, tell: Callable[[Shown], None], calls: int = 14
) -> Shown:
    """Kills so often, or for so long; raises WrongError at the first thing that is wrong."""
    shown, until = Shown(), time.monotonic() + seconds
    points: list[str] = []
    while shown.kills.total() < kills and time.monotonic() < until:
        shown.shards += 1
        with tempfile.TemporaryDirectory(prefix="winnow-crashes-") as place:
            texts = first_texts(rng.randint(0, 30), rng)
            passages = [passage(name, text) for name, text in texts.items()]
            shard = build_shard(Path(place), passages, index="crashes", dimension=DIMENSION)
            life = Life(Model({name: (text, None) for name, text in texts.items()}))
            for _ in range(_LIVES):
                if shown.kills.total() >= kills or time.monotonic() >= until:
                    break
                # some are killed whenever it comes
                points = points or [*points_in_turn(POINTS, rng), *[""] * (len(POINTS) // 4)]
                point = points.pop(rng.randrange(len(points)))
                if point.startswith("repair."):
                    damage(shard, rng)
                    point = f"{point.partition(':')[0]}:1"
                life = await live(shard, life, rng, point, calls)
                shown.add(life)
                tell(shown)
            # nothing kills the last one before it was checked
            life = await live(shard, life, rng, "", calls)
            shown.add(life)
            tell(shown)
    return shown


def damage(shard: Path, rng: random.Random) -> None:
    """Alters a byte of a file of the newest generation that can be made again."""
    live_directory = shard / LIVE
    names = newest_first(path.name for path in live_directory.glob("*"))
    if not names:
        return
    path = live_directory / names[0] / rng.choice(_DERIVED)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
