"""Dashboards as Grafana's JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

from deploy.grafana.panels import Dashboard, Kind, Panel, Row, Variable

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 7
_TRACED = re.compile(r"winnow_(?:request|front_stage|node_stage)_seconds_bucket")
"""Histograms whose points may lead to traces."""
_SCHEMA = 39
"""Grafana's version of this format: that of Grafana 11."""


def drawn(dashboard: Dashboard) -> str:
    """The file that Grafana is given."""
    content = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "tags": ["winnow"],
        "links": [_link()],
        "templating": {"list": [_source(), *map(_variable, dashboard.variables)]},
        "annotations": {"list": []},
        "graphTooltip": 1,
        "panels": list(_panels(dashboard.rows)),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _panels(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    number = top = 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        top += 1
        across = _COLUMNS // _WIDTH
        for count, panel in enumerate(row.panels):
            number += 1
            x, y = count % across * _WIDTH, top + count // across * _HEIGHT
            yield _panel(number, panel, {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT})
        top += -(-len(row.panels) // across) * _HEIGHT


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    fields: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.most is not None:
        fields["max"] = panel.most
    if panel.named:
        words = {value: {"text": text, "color": colour} for value, text, colour in panel.named}
        fields["mappings"] = [{"type": "value", "options": words}]
    return {
        "id": number,
        "type": panel.kind.plugin,
        "title": panel.title,
        "description": panel.says,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": fields, "overrides": []},
        "options": _options(panel),
        "targets": [_target(panel, place) for place in range(len(panel.series))],
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind is Kind.LINES:
        return {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind is Kind.NUMBERS:
        return {"textMode": "value_and_name", "reduceOptions": {"calcs": ["lastNotNull"]}}
    buckets = panel.kind is Kind.BUCKETS
    return {
        "calculate": False,
        "rowsFrame": {"layout": "auto"},
        "cellGap": 1,
        "cellValues": {"unit": "cps" if buckets else panel.unit},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
        "yAxis": {"unit": panel.unit if buckets else "short"},
        "tooltip": {"mode": "single", "yHistogram": False},
        "legend": {"show": True},
        "showValue": "never",
    }


def _target(panel: Panel, place: int) -> dict[str, Any]:
    series = panel.series[place]
    instant = panel.kind is Kind.NUMBERS
    return {
        "refId": chr(ord("A") + place),
        "datasource": _SOURCE,
        "expr": series.expr,
        "legendFormat": series.name,
        "format": "heatmap" if panel.kind is Kind.BUCKETS else "time_series",
        "exemplar": panel.kind is Kind.LINES and bool(_TRACED.search(series.expr)),
        "instant": instant,
        "range": not instant,
    }


def _source() -> dict[str, Any]:
    return {
        "name": "source",
        "label": "data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
    }


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.label})"
    return {
        "name": variable.name,
        "label": variable.says,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "values"},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _link() -> dict[str, Any]:
    """To the other dashboards."""
    return {
        "type": "dashboards",
        "title": "Winnow",
        "tooltip": "",
        "icon": "external link",
        "tags": ["winnow"],
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }
