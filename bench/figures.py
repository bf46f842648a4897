"""Measured values with their targets, and ratios between variants of one interleaved run."""

import itertools
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from statistics import median

from bench.quantiles import nearest_rank

BLOCK_COUNT = 5
"""Number of consecutive blocks of a run. The spread of the blocks' values shows the uncertainty."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a benchmark's table."""

    group: str
    """The benchmark or the part of a benchmark that measured the value."""
    name: str
    value: float
    unit: str = ""
    _: KW_ONLY
    spread: tuple[float, float] | None = None
    """Lowest and highest value of the run's blocks, or the confidence interval of `value`."""
    target: str = ""
    """The target in words, such as `at most 1.3`; empty if there is none."""
    holds: bool | None = None
    """Whether the target was reached; None if there is no target or it cannot be judged."""


def at_most(figure: Figure, limit: float) -> Figure:
    """Returns a figure with an upper bound as its target."""
    return replace(figure, target=f"at most {limit:g}", holds=figure.value <= limit)


def at_least(figure: Figure, limit: float) -> Figure:
    """Returns a figure with a lower bound as its target."""
    return replace(figure, target=f"at least {limit:g}", holds=figure.value >= limit)


def quantile_figure(group: str, name: str, seconds: Sequence[float], level: float) -> Figure:
    """Returns a quantile of `seconds` as a figure in milliseconds."""
    in_blocks = [nearest_rank(block, level) * 1e3 for block in _blocks(seconds)]
    value, spread = nearest_rank(seconds, level) * 1e3, (min(in_blocks), max(in_blocks))
    return Figure(group, f"{name}, p{level * 100:g}", value, "ms", spread=spread)


def quantile_figures(
    group: str, name: str, seconds: Sequence[float], *levels: float
) -> list[Figure]:
    """Returns a figure for each quantile of `seconds`."""
    return [quantile_figure(group, name, seconds, level) for level in levels]


def ratio_figure(
    group: str, name: str, seconds: Sequence[float], baseline: Sequence[float], level: float
) -> Figure:
    """Divides a quantile of `seconds` by the same quantile of `baseline`, in each block of the run.

    The two series must be measured interleaved. The value is the median over blocks, because other
    work on the machine may spoil one block.
    """
    in_blocks = [
        nearest_rank(block, level) / nearest_rank(reference, level)
        for block, reference in zip(_blocks(seconds), _blocks(baseline), strict=True)
    ]
    return Figure(group, name, median(in_blocks), "times", spread=(min(in_blocks), max(in_blocks)))


def format_line(figure: Figure) -> str:
    """Formats a figure as a line of the table."""
    spread = "({:.3g} to {:.3g})".format(*figure.spread) if figure.spread else ""
    target = f"target: {figure.target}" if figure.target else ""
    value = f"{figure.value:10.3f}".rstrip("0").rstrip(".") if figure.unit else f"{figure.value:g}"
    return f"{figure.group:9} {figure.name:52} {value:>10} {figure.unit:5} {spread:18} {target}"


def print_figures(figures: Sequence[Figure], *, as_json: bool) -> int:
    """Prints figures, then the figures with missed targets; returns 1 if there are any, else 0."""
    if as_json:
        print(json.dumps([_as_json(figure) for figure in figures], indent=2))
    else:
        for figure in figures:
            print(format_line(figure))
    missed = [figure for figure in figures if figure.holds is False]
    for figure in missed:
        print(f"missed target: {format_line(figure)}", file=sys.stderr)
    return 1 if missed else 0


def _blocks(values: Sequence[float]) -> list[Sequence[float]]:
    """Splits values into `BLOCK_COUNT` consecutive blocks, and leaves out empty ones."""
    ends = [len(values) * number // BLOCK_COUNT for number in range(BLOCK_COUNT + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends) if end > begin]


def _as_json(figure: Figure) -> dict[str, object]:
    """Returns a figure's JSON object. An infinite bound of the spread becomes null."""
    spread = figure.spread and [end if math.isfinite(end) else None for end in figure.spread]
    return {
        "row": figure.group,
        "what": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "spread": spread,
        "wanted": figure.target,
        "holds": figure.holds,
    }
