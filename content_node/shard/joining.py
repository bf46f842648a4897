"""Which of the segments in memory are made one. Pure.

Each question asks every segment, so there may not be many; making one costs as much as it is large,
so a large one is not made again for every write.
"""

from collections.abc import Sequence

_GROWS = 3
"""How many times as large as the largest of its parts a segment has to be that is made of them: a
passage is moved log(rows) / log(3) times at most.
"""
LARGEST = 8_192
"""Rows that a segment gets by joining: it then takes some tenths of a second to make."""


def tail_to_join(rows: Sequence[int]) -> int:
    """How many of the last segments, which have so many rows each, are to be made one; 0 for none.

    Of 16 000 rows that come one by one there are at most 17 segments, 9 on average, and fewer where
    several come at a time.
    """
    total = largest = count = 0
    for place, own in enumerate(reversed(rows), start=1):
        total, largest = total + own, max(largest, own)
        if total > LARGEST:
            break
        if place > 1 and largest * _GROWS <= total:
            count = place
    return count
