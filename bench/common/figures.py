"""A figure, what is wanted of it, and how figures of one interleaved run are compared."""

import itertools
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


def line(figure: Figure) -> str:
    """A figure as people read it."""
    spread = "({:.3g} to {:.3g})".format(*figure.spread) if figure.spread else ""
    wanted = f"wanted: {figure.wanted}" if figure.wanted else ""
    value = f"{figure.value:10.3f}".rstrip("0").rstrip(".") if figure.unit else f"{figure.value:g}"
    return f"{figure.row:9} {figure.what:52} {value:>10} {figure.unit:5} {spread:18} {wanted}"


def show(figures: Sequence[Figure], *, as_json: bool) -> int:
    """Prints figures, then those that are not as wanted; the exit code: 1 if there are such."""
    if as_json:
        print(json.dumps([_plain(figure) for figure in figures], indent=2))
    else:
        for figure in figures:
            print(line(figure))
    missed = [figure for figure in figures if figure.holds is False]
    for figure in missed:
        print(f"not as wanted: {line(figure)}", file=sys.stderr)
    return 1 if missed else 0


def _plain(figure: Figure) -> dict[str, object]:
    """A figure for JSON, which has no infinity: an open end of a spread is null."""
    spread = figure.spread and [end if math.isfinite(end) else None for end in figure.spread]
    return {**asdict(figure), "spread": spread}
