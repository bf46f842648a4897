"""Draws the batches of all training steps, from a seed.

All batches are drawn before training, so training can resume at any step.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

_SORTED_BATCHES = 48
"""Number of batches that are sorted by length together.

Sorting reduces padding. Sorting all batches together would mix the questions too little.
"""


def question_batches(
    sources: Sequence[str],
    lengths: Sequence[int],
    passes: Mapping[str, float],
    batch: int,
    seed: int,
) -> list[list[int]]:
    """Returns all batches of a run, as question numbers.

    `passes` is the number of passes over each source. 1.5 means one pass over all questions and one
    over a random half. Sources that are not in `passes` are left out.
    """
    generator = random.Random(seed)
    order: list[int] = []
    for drawn in _draw_passes(sources, passes, generator):
        numbers = [number for of_source in drawn for number in of_source]
        generator.shuffle(numbers)
        order += numbers
    batches: list[list[int]] = []
    for start in range(0, len(order), batch * _SORTED_BATCHES):
        window = sorted(order[start : start + batch * _SORTED_BATCHES], key=lambda n: lengths[n])
        groups = _chunks(window, batch)
        generator.shuffle(groups)
        batches += [group for group in groups if len(group) == batch]
    return batches


def article_batches(
    sources: Sequence[str],
    articles: Sequence[str],
    passes: Mapping[str, float],
    together: int,
    batch: int,
    seed: int,
) -> list[list[int]]:
    """Returns all batches of a run, as passage numbers.

    Passages of an article are put next to each other, in groups of at most `together`.

    `passes` is the number of passes over each source, as in `question_batches`.
    """
    generator = random.Random(seed)
    batches: list[list[int]] = []
    for drawn in _draw_passes(sources, passes, generator):
        runs: list[list[int]] = []
        for of_source in drawn:
            of_source.sort(key=lambda number: articles[number])  # stable: random in an article
            runs += _chunks(of_source, together)
        generator.shuffle(runs)
        flat = [number for run in runs for number in run]
        batches += [group for group in _chunks(flat, batch) if len(group) == batch]
    return batches


def equal_length_batches(
    lengths: Sequence[int], passes: float, batch: int, seed: int
) -> list[list[int]]:
    """Returns batches of texts of equal length. A batch has at least two texts."""
    generator = random.Random(seed)
    batches = []
    for (numbers,) in _draw_passes([""] * len(lengths), {"": passes}, generator):
        numbers.sort(key=lambda number: lengths[number])  # stable: random within a length
        for _, group in groupby(numbers, key=lambda number: lengths[number]):
            batches += _chunks(list(group), batch)
    generator.shuffle(batches)
    return [group for group in batches if len(group) > 1]


def _draw_passes(
    sources: Sequence[str], passes: Mapping[str, float], generator: random.Random
) -> Iterator[list[list[int]]]:
    """Yields, for every pass, the question numbers drawn from each source."""
    for pass_number in range(int(max(passes.values())) + 1):
        drawn = []
        for source, count in sorted(passes.items()):
            of_source = [number for number, name in enumerate(sources) if name == source]
            share = min(max(count - pass_number, 0.0), 1.0)
            drawn.append(generator.sample(of_source, round(share * len(of_source))))
        yield drawn


def _chunks(numbers: list[int], size: int) -> list[list[int]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
