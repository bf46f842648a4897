"""What a dashboard is made of: plain values, which `drawing` turns into Grafana's JSON."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a panel looks; the values are Grafana's names."""

    LINES = "timeseries"
    NUMBERS = "stat"
    """The present values."""
    BUCKETS = "heatmap"
    """The buckets of one histogram, over time."""
    ROWS = "heatmap "
    """A row for each series, over time."""

    @property
    def plugin(self) -> str:
        """Of Grafana."""
        return self.value.strip()


@dataclass(frozen=True, slots=True)
class Series:
    """An expression of PromQL, and what its results are called."""

    expr: str
    name: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of some series."""

    title: str
    series: tuple[Series, ...]
    unit: str = "short"
    """As Grafana names it: `s`, `bytes`, `percentunit`, `reqps` …"""
    says: str = ""
    """What has to be known to read it."""
    kind: Kind = Kind.LINES
    most: float | None = None
    """The end of the axis; None for what the values need."""
    named: tuple[tuple[str, str, str], ...] = ()
    """Values with the words and colours that stand for them."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """What can be chosen at the head of a dashboard: all values of a label, or some of them."""

    name: str
    says: str
    metric: str
    """The series that have the label."""
    label: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of rows."""

    uid: str
    title: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]


def panel(title: str, unit: str, *series: tuple[str, str], says: str = "") -> Panel:
    """Lines over time; each of the series is an expression and its name."""
    return Panel(title, tuple(Series(*each) for each in series), unit, says)


def shares(title: str, *series: tuple[str, str], says: str = "") -> Panel:
    """Lines between 0 and 1."""
    return Panel(title, tuple(Series(*each) for each in series), "percentunit", says, most=1)


def numbers(title: str, unit: str, *series: tuple[str, str], says: str = "") -> Panel:
    """The present values."""
    return Panel(title, tuple(Series(*each) for each in series), unit, says, Kind.NUMBERS)


def switch(
    title: str,
    words: tuple[str, str],
    *series: tuple[str, str],
    colours: tuple[str, str] = ("green", "red"),
) -> Panel:
    """Present values that are 1 or 0: `words` and `colours` for 1, then for 0."""
    named = tuple(zip(("1", "0"), words, colours, strict=True))
    parts = tuple(Series(*each) for each in series)
    return Panel(title, parts, kind=Kind.NUMBERS, named=named)
