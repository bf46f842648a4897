"""Prometheus scrapes a cluster under load: every panel and rule returns data."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import needs
import pytest
from expressions import DASHBOARDS, of_panels, variables
from nats_server import NatsServer, needs_nats
from prometheus_server import PrometheusServer, needs_prometheus
from tenacious import LONG, until
from watched_cluster import WatchedCluster, watched

from winnow.__main__ import main

pytest.importorskip("opentelemetry.proto", reason=needs.OTEL)

from collector import collecting

pytestmark = [needs_prometheus, pytest.mark.bundle, pytest.mark.timeout(900)]
_JOURNAL = "winnow_node_journal_"
_CERTIFICATES = "winnow_certificate_"
"""Metrics that this cluster does not have; `test_secured.py` tests them."""
Expressions = dict[str, str]
"""Expressions of panels by location."""


@pytest.fixture(scope="module")
def cluster(
    indexes: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WatchedCluster]:
    directory = tmp_path_factory.mktemp("watched")
    with contextlib.ExitStack() as stack:
        journal = ""
        if not needs_nats.args[0]:  # without it the panels of journals are skipped below
            nats = NatsServer(directory / "nats")
            stack.callback(nats.close)
            journal = nats.start().url
        collector = stack.enter_context(collecting())
        yield stack.enter_context(watched(indexes[2], directory, journal, collector.url))


@pytest.fixture(scope="module")
def prometheus(
    cluster: WatchedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    server = PrometheusServer(tmp_path_factory.mktemp("prometheus"), cluster.metrics)
    yield server
    server.close()


def without_data(
    cluster: WatchedCluster, prometheus: PrometheusServer, expressions: Expressions
) -> list[str]:
    """Returns the locations whose expressions return no data after several rounds of use."""
    deadline = time.monotonic() + LONG
    missing = dict(expressions)
    while missing and time.monotonic() < deadline:
        cluster.use()
        missing = {place: expr for place, expr in missing.items() if not prometheus.values(expr)}
    return [f"{place}: {expr}" for place, expr in missing.items()]


def panels(chosen: Callable[[str], bool]) -> Expressions:
    return {f"{place}: {expr}": expr for place, expr in of_panels() if chosen(expr)}


def test_every_expression_of_every_panel_returns_data(
    cluster: WatchedCluster, prometheus: PrometheusServer
) -> None:
    expressions = panels(lambda expr: _JOURNAL not in expr and _CERTIFICATES not in expr)
    assert without_data(cluster, prometheus, expressions) == []


@needs_nats
def test_every_journal_panel_returns_data(
    cluster: WatchedCluster, prometheus: PrometheusServer
) -> None:
    expressions = panels(lambda expr: _JOURNAL in expr)
    assert len(expressions) == 4
    assert without_data(cluster, prometheus, expressions) == []


def test_every_variable_has_values_to_choose(prometheus: PrometheusServer) -> None:
    for uid, page in DASHBOARDS.items():
        for name, query in variables(page).items():
            named = re.fullmatch(r"label_values\((\w+), (\w+)\)", query)
            assert named is not None, query
            assert prometheus.label_values(named[1], named[2]), (uid, name)


def test_rules_are_evaluated_and_a_healthy_cluster_fires_no_alert(
    cluster: WatchedCluster, prometheus: PrometheusServer
) -> None:
    recorded = {r["name"]: r["name"] for r in prometheus.rules() if r["type"] == "recording"}
    assert len(recorded) == 13
    assert without_data(cluster, prometheus, recorded) == []
    rules = prometheus.rules()
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []


@pytest.mark.parametrize("stage", ["request", "front_stage"])
def test_exemplars_link_to_traces(
    cluster: WatchedCluster, prometheus: PrometheusServer, stage: str
) -> None:
    def led() -> bool:
        cluster.use()
        return bool(prometheus.traces(f"winnow_{stage}_seconds_bucket"))

    until(led)
    assert all(len(each) == 32 for each in prometheus.traces(f"winnow_{stage}_seconds_bucket"))


def test_winnow_top_shows_the_same_cluster(
    cluster: WatchedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = [f"--metrics={each}" for addresses in cluster.metrics.values() for each in addresses]
    address = f"--address={cluster.cluster.address}"
    with pytest.raises(SystemExit) as ended:
        main(["top", address, *metrics, "--once", "--json", "--every=0.1", f"--timeout={LONG}"])
    assert not ended.value.code
    said = json.loads(capsys.readouterr().out)
    states = [[each["state"] for each in shard["replicas"]] for shard in said["cluster"]["shards"]]
    assert states == [["STATE_SERVING"], ["STATE_SERVING"]]
    assert int(said["cluster"]["front"]["questionsAnswered"]) > 0
    processes = said["figures"]["processes"]
    parts = ["front", "node", "node", "encoder", "heads", "reader"]
    assert [each["part"] for each in processes] == parts
    assert all(each["ready"] and each["memory"] > 0 for each in processes)
    assert sorted(each["shards"] for each in processes[1:3]) == [["0"], ["1"]]
