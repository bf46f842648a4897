"""A measured value with its target, and how values of one interleaved run are compared."""

import itertools
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from statistics import median

from bench.quantiles import nearest_rank

BLOCKS = 5
"""Parts of a run; each gives a value, and the spread of these says how sure the whole is."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a benchmark's table."""

    row: str
    what: str
    value: float
    unit: str = ""
    _: KW_ONLY
    spread: tuple[float, float] | None = None
    """Lowest and highest value of the blocks of a run."""
    wanted: str = ""
    """The target in words; empty without a target."""
    holds: bool | None = None
    """Whether the target was reached; None without a target."""


def at_most(figure: Figure, most: float) -> Figure:
    """Returns a figure with an upper bound as its target."""
    return replace(figure, wanted=f"at most {most:g}", holds=figure.value <= most)


def at_least(figure: Figure, least: float) -> Figure:
    """Returns a figure with a lower bound as its target."""
    return replace(figure, wanted=f"at least {least:g}", holds=figure.value >= least)


def quantile(row: str, what: str, seconds: Sequence[float], share: float) -> Figure:
    """Returns a quantile of times, in milliseconds."""
    parts = [nearest_rank(block, share) * 1e3 for block in _blocks(seconds)]
    name = f"{what}, p{share * 100:g}"
    return Figure(
        row, name, nearest_rank(seconds, share) * 1e3, "ms", spread=(min(parts), max(parts))
    )


def ratio(
    row: str, what: str, seconds: Sequence[float], against: Sequence[float], share: float
) -> Figure:
    """Divides a quantile of times by that of others, which were measured in turn with them.

    It is the median over blocks, so that a burst of other work on the machine spoils one of them
    only.
    """
    parts = [
        nearest_rank(ours, share) / nearest_rank(theirs, share)
        for ours, theirs in zip(_blocks(seconds), _blocks(against), strict=True)
    ]
    return Figure(row, what, median(parts), "times", spread=(min(parts), max(parts)))


def line(figure: Figure) -> str:
    """Returns a figure as a line of the table."""
    spread = "({:.3g} to {:.3g})".format(*figure.spread) if figure.spread else ""
    wanted = f"wanted: {figure.wanted}" if figure.wanted else ""
    value = f"{figure.value:10.3f}".rstrip("0").rstrip(".") if figure.unit else f"{figure.value:g}"
    return f"{figure.row:9} {figure.what:52} {value:>10} {figure.unit:5} {spread:18} {wanted}"


def show(figures: Sequence[Figure], *, as_json: bool) -> int:
    """Prints figures, then those that miss their targets; returns 1 if one does, else 0."""
    if as_json:
        print(json.dumps([_plain(figure) for figure in figures], indent=2))
    else:
        for figure in figures:
            print(line(figure))
    missed = [figure for figure in figures if figure.holds is False]
    for figure in missed:
        print(f"not as wanted: {line(figure)}", file=sys.stderr)
    return 1 if missed else 0


def _blocks(values: Sequence[float]) -> list[Sequence[float]]:
    """Cuts values into blocks, in order of time."""
    ends = [len(values) * number // BLOCKS for number in range(BLOCKS + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends) if end > begin]


def _plain(figure: Figure) -> dict[str, object]:
    """A figure for JSON, which has no infinity: an open end of a spread is null."""
    spread = figure.spread and [end if math.isfinite(end) else None for end in figure.spread]
    return {**asdict(figure), "spread": spread}
