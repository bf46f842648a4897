"""Which segments in memory are joined to one. Pure.

Each question searches every segment, so there must be few. Making one takes time for each of its
rows, so a large one is not made again for every write.
"""

from collections.abc import Sequence

_GROWS = 3
"""A joined segment is at least this many times as large as its largest part. So a passage is moved
at most log(rows) / log(3) times.
"""
LARGEST = 8_192
"""Most rows of a joined segment: making it takes some tenths of a second."""


def tail_to_join(rows: Sequence[int]) -> int:
    """Returns how many of the last segments to join, given the rows of each; 0 for none.

    16 000 rows that come one by one make at most 17 segments, 9 on average, and fewer if several
    come at a time.
    """
    total = largest = count = 0
    for place, own in enumerate(reversed(rows), start=1):
        total, largest = total + own, max(largest, own)
        if total > LARGEST:
            break
        if place > 1 and largest * _GROWS <= total:
            count = place
    return count
