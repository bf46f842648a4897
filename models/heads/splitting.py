"""Texts that no head is trained on, to stop early and to calibrate with. Pure."""

import random
from collections import defaultdict
from collections.abc import Sequence


def hold_out(groups: Sequence[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Places of the rows to learn from, and of those held out: about `share` of every group.

    `groups` has the group of each row, such as its label. One row of each stays to learn from.
    """
    generator = random.Random(seed)
    members: defaultdict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        members[group].append(place)
    learnt: list[int] = []
    held: list[int] = []
    owed = 0.0
    for _, places in sorted(members.items()):
        generator.shuffle(places)
        # what is owed is carried over, or rare groups would never be held out
        owed += len(places) * share
        count = min(int(owed), len(places) - 1)
        owed -= count
        held += places[:count]
        learnt += places[count:]
    return sorted(learnt), sorted(held)
