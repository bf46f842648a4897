"""The figures of one process, from its metrics. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from winnow.cli.top.metrics_page import MetricsPage

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
