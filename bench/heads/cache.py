"""Row `cache`: the hit rate of the cache of encodings where texts come by a Zipf law."""

from collections.abc import Sequence
from random import Random

import numpy as np

from bench.figures import Figure
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import made_up
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoding, Then

_NEAR = 0.03
"""Most distance of the hit rate from the one that the cache is sized for."""


class _NoModel:
    """Returns encodings of the right size: the hit rate does not depend on their values."""

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
    """Measures a cache that is sized for 40 % hits, and one of the front's default size."""
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
            Figure("cache", f"{name} cache: memory", budget / (1 << 20), "MiB"),
            Figure("cache", f"{name} cache: encodings", budget / size),
            Figure("cache", f"{name} cache: hits", 100 * rate, "%",
                   wanted=f"{zipf.HITS:.0%}, ± {_NEAR:.0%}" if wanted else "",
                   holds=abs(rate - zipf.HITS) <= _NEAR if wanted else None),
            Figure("cache", f"{name} cache: evictions", evicted),
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
    """Returns the share of hits in the second half of the requests, and all evictions."""
    counted = _Counted()
    cached = CachedTextEncoder(_NoModel(width), budget, counted)
    places = zipf.drawn(requests, each, chance)
    for number, place in enumerate(places):
        if number == requests // 2:
            counted.looks = {"hit": 0, "miss": 0}
        await cached.encode(texts[place])
    return counted.looks["hit"] / sum(counted.looks.values()), counted.evicted
