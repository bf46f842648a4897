"""Decides which segments in memory are joined into one segment. Pure.

Each question searches every segment, so there must be few segments. Building a segment takes time
for each of its rows, so a large segment is not rebuilt for every write.
"""

from collections.abc import Sequence

_GROWTH = 3
"""Minimum ratio of a joined segment to its largest part. So a passage is moved at most log(rows) /
log(3) times.
"""
MAX_JOINED_ROWS = 8_192
"""Maximum rows of a joined segment: building it takes some tenths of a second."""


def tail_to_join(rows: Sequence[int]) -> int:
    """Returns how many of the last segments to join, given the rows of each; 0 for none.

    If 16 000 rows are added one at a time, there are at most 17 segments, 9 on average. If several
    rows are added at a time, there are fewer segments.
    """
    total = largest = to_join = 0
    for count, size in enumerate(reversed(rows), start=1):
        total, largest = total + size, max(largest, size)
        if total > MAX_JOINED_ROWS:
            break
        if count > 1 and largest * _GROWTH <= total:
            to_join = count
    return to_join
