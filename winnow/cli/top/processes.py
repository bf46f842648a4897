"""What the metrics of one process tell. Pure."""

from dataclasses import dataclass, field

from winnow.cli.top.page import Page

CALLS = "winnow_request_seconds"


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of processes of a kind."""

    ready: str
    """Only these have it."""
    methods: tuple[str, ...]
    """That they are called for."""
    queue: str
    """Time of each stage, of which one is called queue."""


_PARTS = {
    "front": _Part("winnow_front_ready", ("Answer", "Predict"), "winnow_front_stage_seconds"),
    "node": _Part("winnow_node_ready", ("Retrieve", "Read", "Search"), "winnow_node_stage_seconds"),
    "encoder": _Part("winnow_encoder_ready", ("Encode",), "winnow_encoder_stage_seconds"),
    "heads": _Part("winnow_head_node_ready", ("Apply",), ""),
}


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its metrics; None is what they do not tell."""

    address: str
    """Of its metrics."""
    part: str = ""
    """front, node, encoder or heads."""
    shards: list[str] = field(default_factory=list)
    ready: bool | None = None
    calls: float | None = None
    """A second, of what it is there for."""
    queue_p95: float | None = None
    """Seconds of waiting."""
    call_p95: float | None = None
    """Seconds of a call."""
    busy: float | None = None
    """Share of its reader threads that are at work at this moment."""
    cores: float | None = None
    """At work, on average."""
    memory: float | None = None
    """Bytes."""
    fault: str = ""
    """Why nothing is known of it."""


def part_of(page: Page) -> str:
    """The kind of process; empty if it is none of Winnow's."""
    return next((name for name, part in _PARTS.items() if page.total(part.ready) is not None), "")


def process(address: str, now: Page | str, grown: Page | None, seconds: float) -> Process:
    """A process as it is now, and what it did in the last `seconds`, if that is known."""
    if isinstance(now, str):
        return Process(address, fault=now)
    name = part_of(now)
    if not name:
        return Process(address, fault="these are not metrics of Winnow")
    part, threads = _PARTS[name], now.total("winnow_node_reader_threads")
    busy = now.total("winnow_node_reader_threads_busy")
    since = grown or Page({})
    return Process(
        address,
        name,
        now.values("winnow_node_index_passages", "shard"),
        bool(now.total(part.ready)),
        _rate(since.total(f"{CALLS}_count", method=part.methods), seconds),
        since.quantile(0.95, part.queue, stage="queue"),
        since.quantile(0.95, CALLS, method=part.methods),
        busy / threads if threads and busy is not None else None,
        _rate(since.total("process_cpu_seconds_total"), seconds),
        now.total("process_resident_memory_bytes"),
    )


def _rate(count: float | None, seconds: float) -> float | None:
    return count / seconds if count is not None and seconds > 0 else None
