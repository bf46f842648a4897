"""A figure, what is wanted of it, and how figures of one interleaved run are compared. Pure."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

BLOCKS = 5
"""Parts of a run, each with a figure of its own: their spread says how sure the whole is."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    row: str
    what: str
    value: float
    unit: str
    spread: tuple[float, float] | None = None
    """Of the blocks of a run."""
    wanted: str = ""
    holds: bool | None = None
    """None where nothing is wanted."""


def quantile(row: str, what: str, seconds: Sequence[float], share: float) -> Figure:
    """A quantile of times, in milliseconds."""
    own = [_quantile(block, share) * 1e3 for block in _blocks(seconds)]
    name = f"{what}, p{share * 100:g}"
    return Figure(row, name, _quantile(seconds, share) * 1e3, "ms", (min(own), max(own)))


def ratio(
    row: str,
    what: str,
    seconds: Sequence[float],
    against: Sequence[float],
    share: float,
    most: float | None = None,
) -> Figure:
    """A quantile of times as a multiple of that of others, measured in turn with them.

    The median over blocks, so that a burst of other work on the machine spoils one of them only.
    """
    own = [
        _quantile(ours, share) / _quantile(theirs, share)
        for ours, theirs in zip(_blocks(seconds), _blocks(against), strict=True)
    ]
    value, wanted = median(own), "" if most is None else f"at most {most:g}"
    holds = None if most is None else value <= most
    return Figure(row, what, value, "times", (min(own), max(own)), wanted, holds)


def _blocks(values: Sequence[float]) -> list[Sequence[float]]:
    """In order of time."""
    ends = [len(values) * number // BLOCKS for number in range(BLOCKS + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends) if end > begin]


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))
