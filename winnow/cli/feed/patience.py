"""How long to wait before a request is sent again. Pure."""

_FIRST, _LONGEST = 0.1, 5.0
"""Seconds."""
_DOUBLINGS = 6


def backoff(attempt: int, chance: float, wanted: float = 0.0) -> float:
    """Seconds to wait.

    Args:
        attempt: how many have failed, from 1.
        chance: 0 to 1, so that several requests do not come back in step.
        wanted: seconds that the server said to wait.

    """
    most = min(_FIRST * (1 << min(attempt, _DOUBLINGS)), _LONGEST)
    return wanted + most * (0.5 + chance / 2)
