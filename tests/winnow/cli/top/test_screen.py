"""What `winnow top` says of a cluster, and how it shows it."""

import io

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console
from shown_cluster import (
    SERVING,
    cluster,
    front_metrics,
    node_metrics,
    reader_metrics,
    replica,
)

from winnow.cli.top.figures import IntervalFigures, ProcessFigures, interval_figures
from winnow.cli.top.metrics_page import MetricsPage
from winnow.cli.top.polling import ClusterSample
from winnow.cli.top.render import (
    format_bytes,
    format_milliseconds,
    format_rate,
    format_share,
    render_screen,
)
from winnow.stateless.metrics import AdmissionMetrics
from winnow.v1.cluster_pb2 import FrontState, GetClusterResponse, ShardState


def page(registry: CollectorRegistry) -> MetricsPage:
    return MetricsPage.parse(generate_latest(registry).decode())


def shown(
    of: GetClusterResponse, found: IntervalFigures, rows: int | None = None, fault: str = ""
) -> str:
    file = io.StringIO()
    Console(width=160, file=file).print(render_screen(of, found, rows, fault))
    return file.getvalue()


def test_rates_and_quantiles_are_those_between_two_samples() -> None:
    before = ClusterSample(
        100.0, cluster(5), {"f": page(front_metrics(1)), "n": page(node_metrics())}
    )
    now = ClusterSample(
        102.0, cluster(25, up=62), {"f": page(front_metrics(21)), "n": page(node_metrics())}
    )
    found = interval_figures(before, now)
    assert (found.questions, found.refused, found.coverage, found.dimmed) == (10, 0, 0.5, 0)
    answer, *stages = found.stages
    assert answer.name == "answer"
    assert 0.033 < (answer.p50 or 0) < 0.047
    assert {stage.name for stage in stages if stage.p95 is not None} == {"read"}
    front, node = found.processes
    assert (front.part, front.ready, front.calls) == ("front", True, 10)
    assert (node.part, node.shards, node.ready, node.busy) == ("node", ["1"], False, 0.75)


def test_the_first_sample_and_one_after_a_restart_have_no_rates() -> None:
    look = ClusterSample(100.0, cluster(5), {"f": page(front_metrics(1))})
    assert interval_figures(None, look).questions is None
    assert interval_figures(None, look).stages == []
    again = interval_figures(
        look, ClusterSample(101.0, cluster(2, up=1.0), {"f": page(front_metrics(3))})
    )
    assert again.questions is None
    assert again.coverage == 0.5


def test_missing_metrics_and_those_of_other_programs_are_reported() -> None:
    other = page(CollectorRegistry())
    look = ClusterSample(1.0, cluster(), {"a": "connection refused", "b": other})
    assert [each.fault for each in interval_figures(look, look).processes] == [
        "connection refused",
        "these are not metrics of a Winnow process",
    ]


def test_replicas_that_do_not_serve_come_first_and_say_why() -> None:
    lines = shown(cluster(), IntervalFigures(questions=12.3, refused=0.0)).splitlines()
    text = "\n".join(lines)
    assert "winnow 1.2.3, bundle default, up 1 min, 2 shards, 1,234 passages" in text
    assert (
        "12 questions/s, 0.0 refused/s, in progress: 3 questions, 24 reads, 0 texts, 0 writes"
        in text
    )
    assert "no replica serves shard 1" in text
    addresses = [word for line in lines for word in line.split() if word.endswith(":9000")]
    assert addresses == ["b:9000", "c:9000", "d:9000", "a:9000"]
    assert "c:9000: refused" in text
    rows = {line.split()[2]: line.split() for line in lines if ":9000 " in line}
    assert rows["b:9000"][-2:] == ["12", "5"]
    assert rows["c:9000"][:2] == ["1", "-"]  # it never replied
    assert "--metrics" in text


def test_replies_cannot_move_the_cursor() -> None:
    assert "\x1b" not in shown(
        cluster(), IntervalFigures(processes=[ProcessFigures(address="x", fault="\x1b[2J")])
    )


def test_of_many_replicas_as_many_are_shown_as_there_is_room_for() -> None:
    many = GetClusterResponse(
        index_id="x",
        shards=[ShardState(shard=n, replicas=[replica(f"n{n}:1", SERVING)]) for n in range(300)],
    )
    text = shown(many, IntervalFigures(), rows=24)
    assert text.count(":1 ") == 10
    assert "… and 290 more replicas" in text
    assert shown(many, IntervalFigures()).count(":1 ") == 300


def test_a_failed_sample_is_shown_beside_the_last_one() -> None:
    text = shown(cluster(), IntervalFigures(), fault="it has gone; trying again")
    assert "it has gone; trying again" in text
    assert "a:9000" in text


def test_a_front_that_has_not_found_its_index_is_shown_too() -> None:
    text = shown(GetClusterResponse(front=FrontState(answers=False)), IntervalFigures())
    assert "does not answer questions" in text


def test_a_reader_is_shown_with_its_work_and_without_an_index() -> None:
    """It has the metrics of a front, but no call of it is a question."""
    look = ClusterSample(100.0, GetClusterResponse(), {"r": page(reader_metrics(1))})
    later = ClusterSample(102.0, GetClusterResponse(), {"r": page(reader_metrics(21))})
    found = interval_figures(look, later)
    (reader,) = found.processes
    assert (reader.part, reader.ready, reader.calls, reader.busy) == ("reader", True, 10, 0.5)
    assert 0.033 < (reader.call_p95 or 0) < 0.05
    assert reader.queue_p95 is not None
    assert found.stages == []
    lines = shown(GetClusterResponse(front=FrontState(windows_in_hand=12)), found).splitlines()
    assert "this server has no index" in lines
    assert "in progress: 0 texts, 12 windows" in lines
    assert "question" not in "".join(lines)
    assert "replica" not in "".join(lines)


def test_a_front_that_also_reads_texts_is_a_front() -> None:
    registry = reader_metrics(1)
    AdmissionMetrics(registry)
    look = ClusterSample(1.0, cluster(), {"f": page(registry)})
    (front,) = interval_figures(look, look).processes
    assert (front.part, front.busy) == ("front", 0.5)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (format_milliseconds(0.0124), "12.4"),
        (format_milliseconds(1.2), "1,200"),
        (format_milliseconds(None), "-"),
        (format_rate(0.44), "0.4"),
        (format_rate(1234.5), "1,234"),
        (format_share(1.0), "100 %"),
        (format_share(0.9999), "> 99.9 %"),
        (format_share(0.0001), "< 0.1 %"),
        (format_share(0.0), "0 %"),
        (format_bytes(143e6), "143 MB"),
        (format_bytes(2.13e9), "2.1 GB"),
    ],
)
def test_figures_are_formatted_for_people(said: str, expected: str) -> None:
    assert said == expected
