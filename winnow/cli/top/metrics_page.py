"""Parses and evaluates a page of metrics in Prometheus' text format. Pure."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Series = dict[str, dict[Labels, float]]
"""Values by name and labels."""
_BOUND = "le"


class MetricsPage:
    """The metrics of a process. Figures are sums over all series with matching labels.

    Keyword arguments filter by labels: each is the value of a label, or a tuple of allowed values.
    """

    def __init__(self, series: Series) -> None:
        self._series = series

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a page. Raises ValueError if the text is not a page of metrics."""
        series: Series = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = frozenset(sample.labels.items())
                series.setdefault(sample.name, {})[labels] = float(sample.value)
        return cls(series)

    @classmethod
    def sum(cls, pages: Iterable[Self]) -> Self:
        """Sums the pages of several processes."""
        series: Series = {}
        for page in pages:
            for name, labels, value in page:
                each = series.setdefault(name, {})
                each[labels] = each.get(labels, 0.0) + value
        return cls(series)

    def __iter__(self) -> Iterator[tuple[str, Labels, float]]:
        for name, each in self._series.items():
            for labels, value in each.items():
                yield name, labels, value

    def increase_since(self, before: Self) -> Self:
        """The increase since `before`. A value that fell was reset, and counts from 0."""
        series: Series = {}
        for name, labels, value in self:
            old = before._series.get(name, {}).get(labels, 0.0)
            series.setdefault(name, {})[labels] = value - old if value >= old else value
        return type(self)(series)

    def total(self, name: str, **labels: str | tuple[str, ...]) -> float | None:
        """The sum of the matching series; None if there is none."""
        values = [value for _, value in self._matching(name, labels)]
        return sum(values) if values else None

    def label_values(self, name: str, label: str) -> list[str]:
        """The distinct values of a label, sorted."""
        return sorted({dict(labels).get(label, "") for labels in self._series.get(name, {})})

    def share(self, name: str, **labels: str | tuple[str, ...]) -> float | None:
        """The sum of the matching series, divided by the sum of all series; None if that is 0."""
        whole = self.total(name)
        return (self.total(name, **labels) or 0.0) / whole if whole else None

    def mean(self, histogram: str) -> float | None:
        """The mean of a histogram; None if nothing was observed."""
        count = self.total(f"{histogram}_count")
        return (self.total(f"{histogram}_sum") or 0.0) / count if count else None

    def quantile(self, at: float, histogram: str, **labels: str | tuple[str, ...]) -> float | None:
        """A quantile of a histogram, interpolated between two bounds as Prometheus does.

        None if nothing was observed.
        """
        buckets: dict[float, float] = {}
        for series_labels, count in self._matching(f"{histogram}_bucket", labels):
            bound = float(series_labels[_BOUND])
            buckets[bound] = buckets.get(bound, 0.0) + count
        if not (rank := at * buckets.get(math.inf, 0.0)):
            return None
        bounds = [(0.0, 0.0), *sorted(buckets.items())]
        for (low, below), (high, count) in itertools.pairwise(bounds):
            if count >= rank and high < math.inf:
                return low + (high - low) * (rank - below) / (count - below)
        return bounds[-2][0]

    def _matching(
        self, name: str, filters: Mapping[str, str | tuple[str, ...]]
    ) -> Iterator[tuple[dict[str, str], float]]:
        for labels, value in self._series.get(name, {}).items():
            series_labels = dict(labels)
            if all(
                series_labels.get(label) in ((values,) if isinstance(values, str) else values)
                for label, values in filters.items()
            ):
                yield series_labels, value
