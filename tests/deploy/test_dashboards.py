"""The dashboards are valid and query existing metrics."""

import itertools
import re

import promql_parser
import pytest
from declared import declared
from expressions import DASHBOARDS, metrics, of_panels, variables

_PAGES = pytest.mark.parametrize("uid", DASHBOARDS)


@pytest.mark.parametrize(("place", "expr"), list(of_panels()))
def test_expressions_are_valid_and_query_existing_metrics(place: str, expr: str) -> None:
    promql_parser.parse(expr)
    assert metrics(expr) <= declared(), place


@_PAGES
def test_a_dashboard_has_the_uid_of_its_file_and_a_unique_title(uid: str) -> None:
    assert DASHBOARDS[uid]["uid"] == uid
    titles = [page["title"] for page in DASHBOARDS.values()]
    assert titles.count(DASHBOARDS[uid]["title"]) == 1


@_PAGES
def test_every_variable_is_used_and_every_used_variable_exists(uid: str) -> None:
    page = DASHBOARDS[uid]
    expressions = [
        target["expr"] for panel in page["panels"] for target in panel.get("targets", ())
    ]
    used = set(re.findall(r"\$(\w+)", " ".join(expressions)))
    assert used - {"__rate_interval"} == set(variables(page))
    for query in variables(page).values():
        assert metrics(query) <= declared(), query


@_PAGES
def test_every_panel_queries_the_selected_data_source(uid: str) -> None:
    panels = [panel for panel in DASHBOARDS[uid]["panels"] if panel["type"] != "row"]
    for asking in (*panels, *(target for panel in panels for target in panel["targets"])):
        assert asking["datasource"] == {"type": "prometheus", "uid": "${source}"}


@_PAGES
def test_panels_have_unique_titles_and_ids_and_do_not_overlap(uid: str) -> None:
    panels = DASHBOARDS[uid]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    titles: set[str] = set()
    for panel in panels:
        titles = set() if panel["type"] == "row" else titles
        assert panel["title"] not in titles
        titles.add(panel["title"])
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = (
            one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"],
            one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"],
        )
        assert any(apart)
