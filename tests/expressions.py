"""The expressions of dashboards and rules, ready to be evaluated."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from deploy.grafana.pages import PAGES

PROMETHEUS = Path(__file__).parent.parent / "deploy" / "prometheus"
_METRIC = re.compile(r"\b(?:winnow|process)_[a-z_]+")
_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


def of_panels() -> Iterator[tuple[str, str]]:
    """Every expression of every panel, and where it stands."""
    for page in PAGES:
        for row in page.rows:
            for panel in row.panels:
                for series in panel.series:
                    yield f"{page.title}, {row.title}, {panel.title}", filled(series.expr)


def of_rules() -> Iterator[dict[str, Any]]:
    """Every rule, as the file has it."""
    for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]:
        yield from group["rules"]


def filled(expr: str) -> str:
    """With all values of every variable, over a minute."""
    return re.sub(r"\$(\w+)", lambda found: "1m" if found[1] == "__rate_interval" else ".*", expr)


def metrics(expr: str) -> set[str]:
    """The metrics that an expression names, as they are declared: a histogram by its own name."""
    return {_OF_HISTOGRAM.sub("", name) for name in _METRIC.findall(expr)}
