"""Renders the state of a cluster for a terminal or a pipe. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from winnow.cli import output
from winnow.cli.output import printable
from winnow.cli.top.figures import IntervalFigures, ProcessFigures, StageTimes
from winnow.quoting import many
from winnow.telemetry.stage import duration
from winnow.v1.cluster_pb2 import GetClusterResponse, ReplicaState, ShardState

UNKNOWN = "-"
_MB, _GB = 1e6, 1e9
_DECIMAL_RATES_BELOW, _DECIMAL_MS_BELOW = 10, 100

STATES = {
    ReplicaState.STATE_SERVING: ("serving", "green"),
    ReplicaState.STATE_OUT: ("left out", "yellow"),
    ReplicaState.STATE_LEAVING: ("leaving", "yellow"),
    ReplicaState.STATE_UNREACHABLE: ("unreachable", "bold red"),
    ReplicaState.STATE_NOT_LOADED: ("not loaded", "bold red"),
    ReplicaState.STATE_REFUSED: ("refused", "bold red"),
    ReplicaState.STATE_LOADING: ("loading", "yellow"),
}
"""The name of each state, and its style."""


def format_milliseconds(seconds: float | None) -> str:
    """Formats seconds as milliseconds: 0.4, 12.3, 1,204."""
    if seconds is None:
        return UNKNOWN
    value = seconds * 1e3
    return f"{value:.1f}" if value < _DECIMAL_MS_BELOW else f"{value:,.0f}"


def format_rate(a_second: float | None) -> str:
    """Formats a rate: 0.4, 12, 1,204."""
    if a_second is None:
        return UNKNOWN
    return f"{a_second:.1f}" if a_second < _DECIMAL_RATES_BELOW else f"{a_second:,.0f}"


def format_share(share: float | None) -> str:
    """Formats a share in percent; only an exact 0 or 1 becomes 0 % or 100 %."""
    if share is None:
        return UNKNOWN
    shown = f"{100 * share:.1f}"
    if shown in ("100.0", "0.0") and share not in (0.0, 1.0):
        return "> 99.9 %" if share > 0.5 else "< 0.1 %"  # noqa: PLR2004
    return f"{shown.removesuffix('.0')} %"


def format_bytes(size: float | None) -> str:
    """Formats a number of bytes: 140 MB, 2.1 GB."""
    if size is None:
        return UNKNOWN
    return f"{size / _GB:,.1f} GB" if size >= _GB else f"{size / _MB:,.0f} MB"


def describe_state(replica: ReplicaState) -> tuple[str, str]:
    """The name of a replica's state, and its style."""
    return STATES.get(replica.state, ("unknown", "yellow"))


_HINT = "for latencies, coverage, queues and memory, give --metrics HOST:PORT of each process"
_OTHER_ROWS = 14
"""Number of lines on the screen that show neither replicas nor processes."""
_MIN_ROWS = 4

Row = tuple[ShardState | None, ReplicaState]


def render_screen(
    cluster: GetClusterResponse, figures: IntervalFigures, rows: int | None = None, fault: str = ""
) -> Group:
    """Renders the screen in `rows` lines. Replicas and processes with problems come first.

    `fault`: why the last poll failed; empty if it did not.
    """
    room = None if rows is None else max(rows - _OTHER_ROWS, _MIN_ROWS)
    parts: list[RenderableType] = [*_header(cluster, figures)]
    if fault:
        parts.append(Text(printable(fault), style="bold red"))
    if figures.stages:
        parts += [Text(), _stages(figures.stages)]
    if _has_index(cluster):
        parts += [Text(), *_replicas(cluster, room)]
    if figures.processes:
        parts += [Text(), *_processes(figures.processes, room)]
    else:
        parts += [Text(), Text(_HINT, style="dim")]
    return Group(*parts)


def _header(cluster: GetClusterResponse, figures: IntervalFigures) -> Iterator[Text]:
    front = cluster.front
    passages = sum(shard.passages for shard in cluster.shards)
    shards = f"{many(len(cluster.shards), 'shard')}, {many(passages, 'passage')}"
    yield Text.assemble(
        ("winnow ", "bold"),
        f"{front.version}, bundle {printable(front.bundle_name)}, up {duration(front.up_seconds)}",
        f", {shards}" if cluster.index_id else "",
    )
    if not _has_index(cluster):
        yield Text("this server has no index")
    elif not front.answers:
        yield Text("the front node does not answer questions now", style="yellow")
    yield Text(", ".join([*_rates(cluster, figures), f"in progress: {_in_progress(cluster)}"]))
    if figures.stages:
        yield Text(
            f"coverage {format_share(figures.coverage)}, "
            f"fewer passages read for {format_share(figures.dimmed)}, "
            f"from the cache {format_share(figures.remembered)}"
        )


def _has_index(cluster: GetClusterResponse) -> bool:
    """Whether the front node has an index. Those of older versions always report `answers`."""
    return bool(cluster.index_id) or bool(cluster.front.HasField("answers"))


def _rates(cluster: GetClusterResponse, figures: IntervalFigures) -> Iterator[str]:
    if _has_index(cluster):
        yield f"{format_rate(figures.questions)} questions/s"
        yield f"{format_rate(figures.refused)} refused/s"


def _in_progress(cluster: GetClusterResponse) -> str:
    front = cluster.front
    reads = [many(front.questions_in_hand, "question"), many(front.reads_in_hand, "read")]
    counts = [
        *(reads if _has_index(cluster) else []),
        many(front.texts_in_hand, "text"),
        *([many(front.passages_in_hand, "write")] if front.feeds else []),
        *([many(front.windows_in_hand, "window")] if front.HasField("windows_in_hand") else []),
    ]
    return ", ".join(counts)


def _stages(stages: Sequence[StageTimes]) -> Table:
    rows = [
        (name, *(format_milliseconds(getattr(stage, name)) for stage in stages))
        for name in ("p50", "p95", "p99")
    ]
    return output.table(("ms", *(stage.name for stage in stages)), rows, ruled=False)


def _replicas(cluster: GetClusterResponse, room: int | None) -> Iterator[RenderableType]:
    rows: list[Row] = [(shard, each) for shard in cluster.shards for each in shard.replicas]
    rows += [(None, each) for each in cluster.strangers]
    rows.sort(key=lambda row: row[1].state == ReplicaState.STATE_SERVING)  # problems first
    missing = [str(shard.shard) for shard in cluster.shards if not _serves(shard)]
    if missing:
        yield Text(f"no replica serves shard {', '.join(missing)}", style="bold red")
    yield output.table(
        ("shard", "passages", "replica", "state", "calls", "reads", "ms/read", "write", "lag"),
        (tuple(_cells(*row)) for row in rows[:room]),
        words={"replica", "state"},
        ruled=False,
    )
    yield from _omission_note(len(rows), room, "replicas")
    for _, replica in rows[:room]:
        if replica.reason:
            yield Text(printable(f"{replica.address}: {replica.reason}"), style="yellow")


def _cells(shard: ShardState | None, replica: ReplicaState) -> Iterator[str | Text]:
    """The cells of a replica; most are unknown before its first reply."""
    has_replied = replica.HasField("heard_seconds")
    name, style = describe_state(replica)
    yield UNKNOWN if shard is None else str(shard.shard)
    yield f"{replica.passages:,}" if has_replied else UNKNOWN
    yield printable(replica.address)
    yield Text(name, style=style)
    yield str(replica.calls_in_hand)
    yield str(replica.reads_in_hand) if has_replied else UNKNOWN
    yield format_milliseconds(replica.seconds_per_read or None)
    yield f"{replica.sequence:,}" if has_replied else UNKNOWN
    yield f"{replica.lag:,}" if has_replied else UNKNOWN


def _serves(shard: ShardState) -> bool:
    return any(each.state == ReplicaState.STATE_SERVING for each in shard.replicas)


def _processes(processes: Sequence[ProcessFigures], room: int | None) -> Iterator[RenderableType]:
    ordered = sorted(processes, key=lambda each: each.ready is True)
    rows = [
        (
            each.address,
            _describe_process(each),
            format_rate(each.calls),
            format_milliseconds(each.queue_p95),
            format_milliseconds(each.call_p95),
            format_share(each.busy),
            UNKNOWN if each.cores is None else f"{each.cores:.2f}",
            format_bytes(each.memory),
        )
        for each in ordered[:room]
    ]
    columns = ("process", "part", "calls/s", "wait p95", "call p95", "readers", "cores", "memory")
    yield output.table(columns, rows, words={"part"}, ruled=False)
    yield from _omission_note(len(ordered), room, "processes")
    for each in ordered[:room]:
        if each.fault:
            yield Text(printable(f"{each.address}: {each.fault}"), style="yellow")


def _describe_process(process: ProcessFigures) -> Text:
    shards = f" {', '.join(process.shards)}" if process.shards else ""
    if process.ready is False:
        return Text(f"{process.part}{shards}, not ready", style="bold red")
    return Text(f"{process.part}{shards}" or UNKNOWN)


def _omission_note(count: int, room: int | None, what: str) -> Iterator[Text]:
    if room is not None and count > room:
        yield Text(f"… and {count - room:,} more {what}", style="dim")
