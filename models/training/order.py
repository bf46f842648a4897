"""Which questions a training step sees: a pure function of the seed.

Knows lengths and sources only. Because nothing depends on earlier steps, training can resume at
any step and see what it would have seen.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

_WINDOW = 48
"""Batches that are sorted by length together: little padding, and still well mixed."""


def batches(
    sources: Sequence[str],
    lengths: Sequence[int],
    passes: Mapping[str, float],
    batch: int,
    seed: int,
) -> list[list[int]]:
    """Returns all batches of a run, as question numbers.

    `passes` is how often the questions of each source are seen: 1.5 is once for all and once more
    for a random half. Sources that are not named are left out.
    """
    generator = random.Random(seed)
    order: list[int] = []
    for drawn in _rounds(sources, passes, generator):
        seen = [number for own in drawn for number in own]
        generator.shuffle(seen)
        order += seen
    found: list[list[int]] = []
    for start in range(0, len(order), batch * _WINDOW):
        window = sorted(order[start : start + batch * _WINDOW], key=lambda n: lengths[n])
        near = _cut(window, batch)
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
    """Returns all batches of a run, as passage numbers, with up to `together` of one article.

    `passes` is how often the passages of each source are seen, as for `batches`. A passage without
    an article, or alone in its own, is mixed within its source.
    """
    generator = random.Random(seed)
    found: list[list[int]] = []
    for drawn in _rounds(sources, passes, generator):
        runs: list[list[int]] = []
        for own in drawn:
            own.sort(key=lambda number: articles[number])  # stable: mixed within an article
            runs += _cut(own, together)
        generator.shuffle(runs)
        flat = [number for run in runs for number in run]
        found += [group for group in _cut(flat, batch) if len(group) == batch]
    return found


def equal_lengths(lengths: Sequence[int], passes: float, batch: int, seed: int) -> list[list[int]]:
    """Returns batches of texts of one length, so that none is padded.

    A text that would be alone in its batch is left out.
    """
    generator = random.Random(seed)
    found = []
    for (seen,) in _rounds([""] * len(lengths), {"": passes}, generator):
        seen.sort(key=lambda number: lengths[number])  # stable: mixed within a length
        for _, group in groupby(seen, key=lambda number: lengths[number]):
            found += _cut(list(group), batch)
    generator.shuffle(found)
    return [group for group in found if len(group) > 1]


def _rounds(
    sources: Sequence[str], passes: Mapping[str, float], generator: random.Random
) -> Iterator[list[list[int]]]:
    """Yields, pass after pass, the numbers that are drawn of each source."""
    for round_ in range(int(max(passes.values())) + 1):
        drawn = []
        for source, times in sorted(passes.items()):
            own = [number for number, name in enumerate(sources) if name == source]
            share = min(max(times - round_, 0.0), 1.0)
            drawn.append(generator.sample(own, round(share * len(own))))
        yield drawn


def _cut(numbers: list[int], size: int) -> list[list[int]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
