"""When a write that failed is sent to its shard again. Pure.

Until then it takes up room, so callers notice by what is refused to them that a shard is slow.
"""

_FIRST, _LONGEST = 0.05, 1.0
"""Seconds."""
_DOUBLINGS = 5


def pause(attempt: int, left: float, wanted: float = 0.0) -> float | None:
    """Seconds to wait before a further attempt; None if there is no time for one, or a shard wants
    so long that its caller should know why.

    Args:
        attempt: how many have failed, from 1.
        left: seconds before the deadline.
        wanted: seconds that the shard said to wait.

    """
    wait = max(min(_FIRST * 2 ** min(attempt - 1, _DOUBLINGS), _LONGEST), wanted)
    return wait if wait < left and wanted <= _LONGEST else None
