"""Computes rates and quantiles of the interval between two samples of a cluster. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from winnow.cli.top.metrics_page import MetricsPage
from winnow.cli.top.polling import ClusterSample

CALLS = "winnow_request_seconds"


class _ProcessKind(NamedTuple):
    """Names of the metrics of one kind of process."""

    ready: str
    """A gauge that only this kind has."""
    methods: tuple[str, ...]
    """Methods whose calls are shown."""
    queue: str
    """Histogram of stages, one of which is named queue; empty if it has none."""


_KINDS = {
    "front": _ProcessKind(
        "winnow_front_ready", ("Answer", "Predict"), "winnow_front_stage_seconds"
    ),
    "node": _ProcessKind(
        "winnow_node_ready", ("Retrieve", "Read", "Search"), "winnow_node_stage_seconds"
    ),
    "encoder": _ProcessKind("winnow_encoder_ready", ("Encode",), "winnow_encoder_stage_seconds"),
    "heads": _ProcessKind("winnow_head_node_ready", ("Apply",), ""),
}
_READER = "reader"
_READER_KIND = _ProcessKind(
    "winnow_front_ready",
    ("ReadTexts", "StreamReadings", "RerankTexts", "RerankV1", "RerankV2", "HighlightText"),
    "winnow_reader_stage_seconds",
)
"""A front that does nothing but read texts of callers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFigures:
    """The figures of a process, computed from its metrics. Unknown figures are None."""

    address: str
    """HOST:PORT that the metrics are read from."""
    part: str = ""
    """Kind of process: front, reader, node, encoder or heads."""
    shards: list[str] = field(default_factory=list)
    ready: bool | None = None
    calls: float | None = None
    """Calls per second, of the main methods of this kind of process."""
    queue_p95: float | None = None
    """95th percentile of the time in the queue, in seconds."""
    call_p95: float | None = None
    """95th percentile of the time of a call, in seconds."""
    busy: float | None = None
    """Share of the reader threads that are busy now."""
    cores: float | None = None
    """Mean number of cores in use."""
    memory: float | None = None
    """Resident memory in bytes."""
    fault: str = ""
    """Why the metrics are unknown; empty if they are known."""


def _kind_of(page: MetricsPage) -> str:
    """The kind of process; empty if the metrics are not from Winnow."""
    if _only_reads_texts(page):
        return _READER
    return next((name for name, kind in _KINDS.items() if page.total(kind.ready) is not None), "")


def _only_reads_texts(page: MetricsPage) -> bool:
    """Whether a front reads texts of callers, and neither answers questions nor predicts."""
    others = ("winnow_front_admissions_total", "winnow_front_texts_in_hand")
    return page.total("winnow_reader_windows_total") is not None and all(
        page.total(each) is None for each in others
    )


def _process_figures(
    address: str, now: MetricsPage | str, delta: MetricsPage | None, seconds: float
) -> ProcessFigures:
    """Computes the figures of a process.

    Args:
        address: HOST:PORT that the metrics are read from.
        now: metrics of the process, or why they are unknown.
        delta: the increase of the metrics in the last `seconds`; None if unknown.
        seconds: length of the interval.

    """
    if isinstance(now, str):
        return ProcessFigures(address=address, fault=now)
    name = _kind_of(now)
    if not name:
        return ProcessFigures(address=address, fault="these are not metrics of a Winnow process")
    kind = _READER_KIND if name == _READER else _KINDS[name]
    delta = delta or MetricsPage({})
    return ProcessFigures(
        address=address,
        part=name,
        shards=now.label_values("winnow_node_index_passages", "shard"),
        ready=bool(now.total(kind.ready)),
        calls=_rate(delta.total(f"{CALLS}_count", method=kind.methods), seconds),
        queue_p95=delta.quantile(0.95, kind.queue, stage="queue"),
        call_p95=delta.quantile(0.95, CALLS, method=kind.methods),
        busy=_busy_share(now),
        cores=_rate(delta.total("process_cpu_seconds_total"), seconds),
        memory=now.total("process_resident_memory_bytes"),
    )


def _busy_share(page: MetricsPage) -> float | None:
    """Share of the reader threads that are busy, of passages or else of texts of callers."""
    for pool in ("winnow_node_reader_threads", "winnow_reader_threads"):
        threads, busy = page.total(pool), page.total(f"{pool}_busy")
        if threads and busy is not None:
            return busy / threads
    return None


def _rate(count: float | None, seconds: float) -> float | None:
    return count / seconds if count is not None and seconds > 0 else None


_STAGE = "winnow_front_stage_seconds"
_ANSWER_METHODS = ("Answer", "AnswerOfMany")
"""Methods that answer one question, or one of several."""
_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Percentiles of a stage in the interval, in seconds; None if there were no questions."""

    name: str
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalFigures:
    """Figures of the interval between two samples. Unknown figures are None."""

    questions: float | None = None
    """Answered questions per second."""
    refused: float | None = None
    """Refused questions per second."""
    coverage: float | None = None
    """Mean share of the passages that was searched."""
    dimmed: float | None = None
    """Share of the questions for which overload reduced the passages to read."""
    remembered: float | None = None
    """Share of the questions answered from the cache."""
    stages: list[StageTimes] = field(default_factory=list)
    """Stages over all front nodes with metrics. The first entry is the whole answer."""
    processes: list[ProcessFigures] = field(default_factory=list)


def interval_figures(before: ClusterSample | None, now: ClusterSample) -> IntervalFigures:
    """Computes the figures of an interval; without an earlier sample, only the present figures."""
    seconds = now.at - before.at if before else 0.0
    deltas = _increases(before, now)
    processes = [
        _process_figures(at, page, deltas.get(at), seconds) for at, page in now.pages.items()
    ]
    fronts = [page for page in deltas.values() if _kind_of(page) == "front"]
    questions, refused = _question_rates(before, now, seconds)
    if not fronts:
        return IntervalFigures(questions=questions, refused=refused, processes=processes)
    front = MetricsPage.sum(fronts)
    return IntervalFigures(
        questions=questions,
        refused=refused,
        coverage=front.mean("winnow_front_coverage_ratio"),
        dimmed=front.share("winnow_front_admissions_total", result="dimmed"),
        remembered=front.share("winnow_front_answer_cache_total", result="hit"),
        stages=[
            _stage_times("answer", front, CALLS, method=_ANSWER_METHODS, status="OK"),
            *(_stage_times(name, front, _STAGE, stage=name) for name in _STAGES),
        ],
        processes=processes,
    )


def _increases(before: ClusterSample | None, now: ClusterSample) -> dict[str, MetricsPage]:
    """The increase of the metrics of each address that both samples have."""
    deltas = {}
    for at, page in now.pages.items():
        old = before.pages.get(at) if before else None
        if isinstance(page, MetricsPage) and isinstance(old, MetricsPage):
            deltas[at] = page.increase_since(old)
    return deltas


def _question_rates(
    before: ClusterSample | None, now: ClusterSample, seconds: float
) -> tuple[float | None, float | None]:
    """Answered and refused questions per second; None if the front node has restarted."""
    new = now.cluster.front
    if before is None or seconds <= 0 or new.up_seconds < before.cluster.front.up_seconds:
        return None, None
    old = before.cluster.front
    return (
        (new.questions_answered - old.questions_answered) / seconds,
        (new.questions_refused - old.questions_refused) / seconds,
    )


def _stage_times(
    name: str, page: MetricsPage, histogram: str, **labels: str | tuple[str, ...]
) -> StageTimes:
    return StageTimes(name, *(page.quantile(at, histogram, **labels) for at in (0.5, 0.95, 0.99)))
