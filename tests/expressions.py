"""PromQL expressions of dashboards and alert rules, with all variables filled in."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_DEPLOY = Path(__file__).parent.parent / "deploy"
PROMETHEUS = _DEPLOY / "prometheus"
DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((_DEPLOY / "grafana" / "dashboards").glob("*.json"))
}
"""Each dashboard by its uid, as Grafana reads it."""
_METRIC = re.compile(r"\b(?:winnow|process)_[a-z_]+")
_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


def of_panels() -> Iterator[tuple[str, str]]:
    """Yields the location and the expression of every target of every panel."""
    for page in DASHBOARDS.values():
        row = ""
        for panel in page["panels"]:
            row = panel["title"] if panel["type"] == "row" else row
            for target in panel.get("targets", ()):
                place = f"{page['title']}, {row}, {panel['title']}"
                yield place, filled(target["expr"])


def variables(page: dict[str, Any]) -> dict[str, str]:
    """Returns the queries of a dashboard's variables, by name of the variable."""
    every = page["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in every if each["type"] == "query"}


def of_rules() -> Iterator[dict[str, Any]]:
    """Yields every alert and recording rule."""
    for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]:
        yield from group["rules"]


def filled(expr: str) -> str:
    """Fills in variables: one minute for the rate interval, all values for the others."""
    return re.sub(r"\$(\w+)", lambda found: "1m" if found[1] == "__rate_interval" else ".*", expr)


def metrics(expr: str) -> set[str]:
    """Returns the declared names of the metrics in an expression; histograms lose their suffix."""
    return {_OF_HISTOGRAM.sub("", name) for name in _METRIC.findall(expr)}
