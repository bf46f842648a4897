"""Texts that no head is trained on, to stop early and to calibrate with. Pure."""

import random
from collections import defaultdict
from collections.abc import Sequence

from models.heads.rows import Row
from winnow.heads.manifest import Kind


def hold_out(
    rows: Sequence[Row], kind: Kind, share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Places of the rows to learn from, and of those held out: about `share` of every label.

    A label that only one text has stays with those to learn from.
    """
    generator = random.Random(seed)
    groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row.labels if kind is Kind.SEQUENCE else ()].append(place)
    learnt: list[int] = []
    held: list[int] = []
    owed = 0.0
    for _, places in sorted(groups.items()):
        generator.shuffle(places)
        # what is owed is carried over, or rare labels would never be held out
        owed += len(places) * share
        count = min(int(owed), len(places) - 1)
        owed -= count
        held += places[:count]
        learnt += places[count:]
    return sorted(learnt), sorted(held)
