"""The dashboards: they are as their sources say, and ask for what there is."""

import itertools
import json
import re

import promql_parser
import pytest
from declared import declared
from expressions import metrics, of_panels

from deploy.grafana.__main__ import PLACE, files
from deploy.grafana.pages import PAGES
from deploy.grafana.panels import Dashboard


def test_the_files_are_what_the_sources_say() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in PLACE.iterdir()}
    assert written == files(), "run python -m deploy.grafana"


@pytest.mark.parametrize(("place", "expr"), list(of_panels()))
def test_an_expression_can_be_parsed_and_names_metrics_that_there_are(
    place: str, expr: str
) -> None:
    promql_parser.parse(expr)
    assert metrics(expr) <= declared(), place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_every_variable_is_used_and_every_variable_that_is_used_is_there(page: Dashboard) -> None:
    used = {
        name
        for row in page.rows
        for panel in row.panels
        for series in panel.series
        for name in re.findall(r"\$(\w+)", series.expr)
    }
    assert used - {"__rate_interval"} == {variable.name for variable in page.variables}
    assert {variable.metric for variable in page.variables} <= declared()


@pytest.mark.parametrize("name", list(files()))
def test_panels_have_names_and_numbers_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = json.loads(files()[name])["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    rows = {row.title: row for page in PAGES if f"{page.uid}.json" == name for row in page.rows}
    for row in rows.values():
        titles = [panel.title for panel in row.panels]
        assert len(set(titles)) == len(titles)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = (
            one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"],
            one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"],
        )
        assert any(apart)
