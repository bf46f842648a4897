"""Where the milliseconds of a question went, one stage below the other."""

from collections.abc import Iterator

from rich.text import Text

from winnow.client import ShardTimings, Timings
from winnow.plural import many

_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")
_LABEL, _FIGURE, _GAP = 9, 8, 2
_LONGEST = 40
_MOST_SHARDS = 8


def waterfall(timings: Timings, width: int) -> Iterator[Text]:
    """Lines for a terminal of `width` columns: a stage begins where the one before ended."""
    spent = [float(getattr(timings, f"{stage}_ms")) for stage in _STAGES]
    room = max(min(width - _LABEL - _FIGURE - _GAP, _LONGEST), 0)
    scale = room / max(timings.total_ms, sum(spent), 1e-9)
    begin = 0.0
    for stage, milliseconds in zip(_STAGES, spent, strict=True):
        yield Text.assemble(
            (stage.ljust(_LABEL), "dim"),
            f"{milliseconds:{_FIGURE}.1f}",
            (bar(begin * scale, (begin + milliseconds) * scale, room), "cyan"),
        )
        begin += milliseconds
    total = f"{timings.total_ms:{_FIGURE}.1f}"
    yield Text.assemble(("total".ljust(_LABEL), "dim"), (total, "bold"))
    yield from _shards(timings.shards)


def bar(begin: float, end: float, room: int) -> str:
    """A bar from one column to another; thin where a stage took some time, but not a column."""
    if begin >= end:
        return ""
    first, columns = min(round(begin), max(room - 1, 0)), round(end) - round(begin)
    return " " * (_GAP + first) + ("█" * columns or "▏")


def _shards(shards: tuple[ShardTimings, ...]) -> Iterator[Text]:
    slowest = sorted(shards, key=_total, reverse=True)[:_MOST_SHARDS]
    for part in sorted(slowest, key=lambda part: part.shard):
        figures = f"queue {part.queue_ms:.1f}, retrieve {part.retrieve_ms:.1f}"
        yield Text(f"shard {part.shard}: {figures}, read {part.read_ms:.1f}", style="dim")
    if more := len(shards) - len(slowest):
        yield Text(f"and {many(more, 'faster shard')}", style="dim")


def _total(part: ShardTimings) -> float:
    return part.queue_ms + part.retrieve_ms + part.read_ms
