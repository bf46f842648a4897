"""Which of several ways to do the same thing is taken, once each was timed.

Knows seconds; does not know what was timed, nor how.
"""

from collections.abc import Sequence

MARGIN = 0.1
"""Share of time that has to be saved. What equal machines measure differs by less."""


def clearly_fastest(seconds: Sequence[float], margin: float = MARGIN) -> int:
    """The place of the one to take, of the usual `seconds` of each.

    The first, unless the fastest saves more than `margin` of its time.
    """
    fastest = min(range(len(seconds)), key=seconds.__getitem__)
    return fastest if seconds[fastest] < (1 - margin) * seconds[0] else 0
