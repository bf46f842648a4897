"""Rates and quantiles of the interval between two samples of a cluster. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from winnow.cli.top.metrics_page import MetricsPage
from winnow.cli.top.polling import ClusterSample

CALLS = "winnow_request_seconds"


class _Part(NamedTuple):
    """The names of the metrics of a kind of process."""

    ready: str
    """Gauge that only this kind has."""
    methods: tuple[str, ...]
    """Methods whose calls are shown."""
    queue: str
    """Histogram of the times of stages, with a stage named queue."""


_PARTS = {
    "front": _Part("winnow_front_ready", ("Answer", "Predict"), "winnow_front_stage_seconds"),
    "node": _Part("winnow_node_ready", ("Retrieve", "Read", "Search"), "winnow_node_stage_seconds"),
    "encoder": _Part("winnow_encoder_ready", ("Encode",), "winnow_encoder_stage_seconds"),
    "heads": _Part("winnow_head_node_ready", ("Apply",), ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process by its metrics; None is unknown."""

    address: str
    """HOST:PORT of its metrics."""
    part: str = ""
    """front, node, encoder or heads."""
    shards: list[str] = field(default_factory=list)
    ready: bool | None = None
    calls: float | None = None
    """Calls a second of the methods of its part."""
    queue_p95: float | None = None
    """Seconds of waiting."""
    call_p95: float | None = None
    """Seconds of a call."""
    busy: float | None = None
    """Share of its reader threads that are busy at this moment."""
    cores: float | None = None
    """Mean cores in use."""
    memory: float | None = None
    """Bytes."""
    fault: str = ""
    """Why its metrics are unknown."""


def part_of(page: MetricsPage) -> str:
    """The kind of process; empty if it is not of Winnow."""
    return next((name for name, part in _PARTS.items() if page.total(part.ready) is not None), "")


def process(
    address: str, now: MetricsPage | str, since: MetricsPage | None, seconds: float
) -> Process:
    """The figures of a process, from its metrics now and from `since`: those of the last `seconds`,
    None if they are unknown.
    """
    if isinstance(now, str):
        return Process(address=address, fault=now)
    name = part_of(now)
    if not name:
        return Process(address=address, fault="these are not metrics of Winnow")
    part, threads = _PARTS[name], now.total("winnow_node_reader_threads")
    busy = now.total("winnow_node_reader_threads_busy")
    since = since or MetricsPage({})
    return Process(
        address=address,
        part=name,
        shards=now.values("winnow_node_index_passages", "shard"),
        ready=bool(now.total(part.ready)),
        calls=_rate(since.total(f"{CALLS}_count", method=part.methods), seconds),
        queue_p95=since.quantile(0.95, part.queue, stage="queue"),
        call_p95=since.quantile(0.95, CALLS, method=part.methods),
        busy=busy / threads if threads and busy is not None else None,
        cores=_rate(since.total("process_cpu_seconds_total"), seconds),
        memory=now.total("process_resident_memory_bytes"),
    )


def _rate(count: float | None, seconds: float) -> float | None:
    return count / seconds if count is not None and seconds > 0 else None


_STAGE = "winnow_front_stage_seconds"
_ASKED = ("Answer", "AnswerOfMany")
"""Methods that answer one question, or one of several."""
_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds of a stage of the questions in the interval; None if there were none."""

    name: str
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFigures:
    """Figures of the interval between two samples; None is unknown."""

    questions: float | None = None
    """Questions answered a second."""
    refused: float | None = None
    """Questions refused a second."""
    coverage: float | None = None
    """Mean share of the known passages that was searched."""
    dimmed: float | None = None
    """Share of the questions for which fewer passages were read than they asked for."""
    remembered: float | None = None
    """Share of the questions that were answered from the cache."""
    stages: list[StageTimes] = field(default_factory=list)
    """Stages of all front nodes with metrics, together; the first one is the whole answer."""
    processes: list[Process] = field(default_factory=list)


def figures(before: ClusterSample | None, now: ClusterSample) -> IntervalFigures:
    """The figures of the interval; without an earlier sample, only those that need none."""
    seconds = now.at - before.at if before else 0.0
    since = _since(before, now)
    processes = [process(at, page, since.get(at), seconds) for at, page in now.pages.items()]
    fronts = [page for page in since.values() if part_of(page) == "front"]
    questions, refused = _asked(before, now, seconds)
    if not fronts:
        return IntervalFigures(questions=questions, refused=refused, processes=processes)
    front = MetricsPage.together(fronts)
    return IntervalFigures(
        questions=questions,
        refused=refused,
        coverage=front.mean("winnow_front_coverage_ratio"),
        dimmed=front.share("winnow_front_admissions_total", result="dimmed"),
        remembered=front.share("winnow_front_answer_cache_total", result="hit"),
        stages=[
            _stage("answer", front, CALLS, method=_ASKED, status="OK"),
            *(_stage(name, front, _STAGE, stage=name) for name in _STAGES),
        ],
        processes=processes,
    )


def _since(before: ClusterSample | None, now: ClusterSample) -> dict[str, MetricsPage]:
    """What was counted in the interval, by address, where both samples have a page."""
    found = {}
    for at, page in now.pages.items():
        old = before.pages.get(at) if before else None
        if isinstance(page, MetricsPage) and isinstance(old, MetricsPage):
            found[at] = page.since(old)
    return found


def _asked(
    before: ClusterSample | None, now: ClusterSample, seconds: float
) -> tuple[float | None, float | None]:
    """Questions answered and refused a second; unknown if the front node has restarted."""
    new = now.cluster.front
    if before is None or seconds <= 0 or new.up_seconds < before.cluster.front.up_seconds:
        return None, None
    old = before.cluster.front
    return (
        (new.questions_answered - old.questions_answered) / seconds,
        (new.questions_refused - old.questions_refused) / seconds,
    )


def _stage(
    name: str, page: MetricsPage, histogram: str, **labels: str | tuple[str, ...]
) -> StageTimes:
    return StageTimes(name, *(page.quantile(at, histogram, **labels) for at in (0.5, 0.95, 0.99)))
