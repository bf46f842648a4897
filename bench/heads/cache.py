"""Part `cache`: hit rates of the cache of encodings. Frequencies of texts follow Zipf's law."""

from collections.abc import Sequence
from random import Random

import numpy as np

from bench.figures import Figure
from winnow.bundle import Bundle
from winnow.cli.ladder import zipf
from winnow.cli.ladder.texts import synthetic_texts
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import OnEncoded, TextEncoding

_HIT_RATE_TOLERANCE = 0.03
"""Allowed difference between the measured hit rate and the hit rate that the cache is sized for."""


class _FakeEncoder:
    """Encoder whose values are all zero. The hit rate depends only on the size of an encoding."""

    def __init__(self, width: int) -> None:
        self._width = width

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        states = np.zeros((len(ids) + 2, self._width), np.float16)
        return TextEncoding(np.zeros(self._width, np.float32), states)

    async def warm_up(self, longest: int) -> None:
        pass

    def close(self) -> None:
        pass


class _CountingMetrics:
    """Metrics of a cache, as plain counters."""

    def __init__(self) -> None:
        self.lookups = {"hit": 0, "miss": 0}
        self.bytes = self.evictions = 0

    def count_lookup(self, result: str) -> None:
        self.lookups[result] += 1

    def resize(self, added_bytes: int, evicted: int) -> None:
        self.bytes += added_bytes
        self.evictions += evicted


async def measure_cache(bundle: Bundle, requests: int) -> list[Figure]:
    """Measures a cache sized for 40 % hits, and a cache of the front's default size."""
    rng, width = Random(0), bundle.manifest.encoder.dimension
    frequencies, texts = zipf.shares(), synthetic_texts(zipf.DISTINCT, rng)
    entry_count = zipf.entries_for(zipf.HIT_RATE, frequencies)
    metrics = _CountingMetrics()
    large_cache = CachedTextEncoder(_FakeEncoder(width), 1 << 30, metrics)
    for ids in texts[:1_000]:
        await large_cache.encode(ids)
    encoding_bytes = metrics.bytes / 1_000
    figures = []
    sized = f"cache for {zipf.HIT_RATE:.0%} hits"
    budgets = {sized: round(entry_count * encoding_bytes), "default cache of 64 MiB": 64 << 20}
    for name, budget in budgets.items():
        rate, evictions = await _hit_rate(width, budget, frequencies, texts, requests, rng)
        has_target = name == sized
        figures += [
            Figure("cache", f"{name}: memory", budget / (1 << 20), "MiB"),
            Figure("cache", f"{name}: encodings", budget / encoding_bytes),
            Figure("cache", f"{name}: hits", 100 * rate, "%",
                   target=f"{zipf.HIT_RATE:.0%}, ± {_HIT_RATE_TOLERANCE:.0%}" if has_target else "",
                   holds=abs(rate - zipf.HIT_RATE) <= _HIT_RATE_TOLERANCE if has_target else None),
            Figure("cache", f"{name}: evictions", evictions),
        ]  # fmt: skip
    return figures


async def _hit_rate(
    width: int,
    budget: int,
    frequencies: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
    texts: Sequence[tuple[int, ...]],
    requests: int,
    rng: Random,
) -> tuple[float, int]:
    """Returns the share of hits in the second half of the requests, and the number of evictions."""
    metrics = _CountingMetrics()
    cached = CachedTextEncoder(_FakeEncoder(width), budget, metrics)
    text_indexes = zipf.draw_texts(requests, frequencies, rng)
    for number, index in enumerate(text_indexes):
        if number == requests // 2:
            metrics.lookups = {"hit": 0, "miss": 0}
        await cached.encode(texts[index])
    return metrics.lookups["hit"] / sum(metrics.lookups.values()), metrics.evictions
