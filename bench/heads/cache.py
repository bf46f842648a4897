"""Row `cache`: how often encodings are found again where texts come as a Zipf law has them."""

from collections.abc import Sequence
from random import Random

import numpy as np

from bench.common.figures import Figure
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import made_up
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoding, Then

ROW = "cache"
_NEAR = 0.03
"""How far the hit rate may be from the one that the cache was made for."""


class _NoModel:
    """Encodings of the right size: what is found again does not depend on what they say."""

    def __init__(self, width: int) -> None:
        self._width = width

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        states = np.zeros((len(ids) + 2, self._width), np.float16)
        return TextEncoding(np.zeros(self._width, np.float32), states)

    async def warm_up(self, longest: int) -> None:
        pass

    def close(self) -> None:
        pass


class _Counted:
    def __init__(self) -> None:
        self.looks = {"hit": 0, "miss": 0}
        self.bytes = self.evicted = 0

    def looked_up(self, result: str) -> None:
        self.looks[result] += 1

    def changed(self, more: int, evicted: int) -> None:
        self.bytes += more
        self.evicted += evicted


async def cache(bundle: Bundle, requests: int) -> list[Figure]:
    """A cache of the size that is hit in 40 % of the cases; and the front's default one."""
    chance, width = Random(0), bundle.manifest.encoder.dimension
    each, texts = zipf.shares(), made_up(zipf.DISTINCT, chance)
    entries = zipf.entries_for(zipf.HITS, each)
    counted = _Counted()
    one = CachedTextEncoder(_NoModel(width), 1 << 30, counted)
    for ids in texts[:1_000]:
        await one.encode(ids)
    size = counted.bytes / 1_000
    found = []
    for name, budget in (("seed's", round(entries * size)), ("default of 64 MiB", 64 << 20)):
        rate, evicted = await _rate(width, budget, each, texts, requests, chance)
        wanted = name == "seed's"
        found += [
            Figure(ROW, f"{name} cache: memory", budget / (1 << 20), "MiB"),
            Figure(ROW, f"{name} cache: encodings", budget / size, ""),
            Figure(ROW, f"{name} cache: hits", 100 * rate, "%",
                   wanted=f"{zipf.HITS:.0%}, ± {_NEAR:.0%}" if wanted else "",
                   holds=abs(rate - zipf.HITS) <= _NEAR if wanted else None),
            Figure(ROW, f"{name} cache: evictions", evicted, ""),
        ]  # fmt: skip
    return found


async def _rate(
    width: int,
    budget: int,
    each: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
    texts: Sequence[tuple[int, ...]],
    requests: int,
    chance: Random,
) -> tuple[float, int]:
    """The share of hits of the second half of the requests, and all evictions."""
    counted = _Counted()
    cached = CachedTextEncoder(_NoModel(width), budget, counted)
    places = zipf.drawn(requests, each, chance)
    for number, place in enumerate(places):
        if number == requests // 2:
            counted.looks = {"hit": 0, "miss": 0}
        await cached.encode(texts[place])
    return counted.looks["hit"] / sum(counted.looks.values()), counted.evicted
