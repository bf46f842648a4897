"""Which questions a training step sees: a pure function of the seed.

Knows lengths and sources only. Because nothing depends on earlier steps, training can resume at
any step and see what it would have seen.
"""

import random
from collections.abc import Mapping, Sequence

_WINDOW = 48
"""Batches that are sorted by length together: little padding, and still well mixed."""


def batches(
    sources: Sequence[str],
    lengths: Sequence[int],
    passes: Mapping[str, float],
    batch: int,
    seed: int,
) -> list[list[int]]:
    """All batches of a run, as question numbers.

    `passes` says how often the questions of each source are seen: 1.5 is once for all and once
    more for a random half. Sources that are not named are left out.
    """
    generator = random.Random(seed)
    order: list[int] = []
    for round_ in range(int(max(passes.values())) + 1):
        seen = []
        for source, times in sorted(passes.items()):
            own = [number for number, name in enumerate(sources) if name == source]
            share = min(max(times - round_, 0.0), 1.0)
            seen += generator.sample(own, round(share * len(own)))
        generator.shuffle(seen)
        order += seen
    found: list[list[int]] = []
    for start in range(0, len(order), batch * _WINDOW):
        window = sorted(order[start : start + batch * _WINDOW], key=lambda n: lengths[n])
        near = [window[i : i + batch] for i in range(0, len(window), batch)]
        generator.shuffle(near)
        found += [group for group in near if len(group) == batch]
    return found


def neighbours(
    sources: Sequence[str],
    articles: Sequence[str],
    passes: Mapping[str, float],
    together: int,
    batch: int,
    seed: int,
) -> list[list[int]]:
    """All batches of a run, as passage numbers, with up to `together` of one article in a batch.

    `passes` says how often the passages of each source are seen, as for `batches`. What has no
    article, or stands alone in its own, is mixed within its source.
    """
    generator = random.Random(seed)
    found: list[list[int]] = []
    for round_ in range(int(max(passes.values())) + 1):
        runs: list[list[int]] = []
        for source, times in sorted(passes.items()):
            own = [number for number, name in enumerate(sources) if name == source]
            share = min(max(times - round_, 0.0), 1.0)
            drawn = generator.sample(own, round(share * len(own)))
            drawn.sort(key=lambda number: articles[number])  # stable: mixed within an article
            runs += [drawn[i : i + together] for i in range(0, len(drawn), together)]
        generator.shuffle(runs)
        flat = [number for run in runs for number in run]
        cut = [flat[i : i + batch] for i in range(0, len(flat), batch)]
        found += [group for group in cut if len(group) == batch]
    return found
