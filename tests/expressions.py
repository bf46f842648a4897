"""The expressions of dashboards and rules, ready to be evaluated."""

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
    """Yields every expression of every panel, and where it stands."""
    for page in DASHBOARDS.values():
        row = ""
        for panel in page["panels"]:
            row = panel["title"] if panel["type"] == "row" else row
            for target in panel.get("targets", ()):
                place = f"{page['title']}, {row}, {panel['title']}"
                yield place, filled(target["expr"])


def variables(page: dict[str, Any]) -> dict[str, str]:
    """Returns the query of each variable of a dashboard that people choose values of, by name."""
    every = page["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in every if each["type"] == "query"}


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
