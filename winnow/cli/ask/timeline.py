"""Renders a timeline: a bar for each stage of a question, each call to a shard and each read."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from winnow.cli.output import printable
from winnow.client import CallOutcome, ShardCall, Timings

_LABEL, _FIGURE, _GAP = 30, 9, 2
"""Widths of the label, a figure and the gap before the bar, in terminal columns."""
_MAX_BAR = 60
"""Maximum width of a bar, in terminal columns."""


class _Span(NamedTuple):
    label: str
    start: float
    ms: float
    style: str = "cyan"


def render_timeline(timings: Timings, width: int) -> Iterator[Text]:
    """Renders lines of `width` columns: the front node's stages, then the calls to each shard."""
    spans = [*_stages(timings), *_calls(timings.calls)]
    room = max(min(width - _LABEL - 2 * _FIGURE - _GAP, _MAX_BAR), 0)
    total = max([timings.total_ms, *(each.start + each.ms for each in spans), 1e-9])
    yield Text(f"{'':{_LABEL}}{'from':>{_FIGURE}}{'took':>{_FIGURE}}", style="dim")
    for each in spans:
        end = each.start + each.ms
        yield Text.assemble(
            (_fit(each.label), "dim"),
            f"{each.start:{_FIGURE}.1f}{each.ms:{_FIGURE}.1f}",
            (bar(each.start * room / total, end * room / total, room), each.style),
        )
    yield Text.assemble((_fit("total"), "dim"), (f"{timings.total_ms:{2 * _FIGURE}.1f}", "bold"))


def _stages(timings: Timings) -> Iterator[_Span]:
    """Returns the stages that took time. Queueing follows tokenising; encoding follows queueing."""
    encode_start = timings.tokenise_ms + timings.queue_ms
    stages = (
        _Span("tokenise", 0.0, timings.tokenise_ms),
        _Span("queue", timings.tokenise_ms, timings.queue_ms),
        _Span("encode", encode_start, timings.encode_ms),
        _Span("retrieve", timings.retrieve_start_ms, timings.retrieve_ms),
        _Span("read", timings.read_start_ms, timings.read_ms),
        _Span("merge", timings.merge_start_ms, timings.merge_ms),
    )
    return (each for each in stages if each.ms > 0)


def _calls(calls: tuple[ShardCall, ...]) -> Iterator[_Span]:
    for call in sorted(calls, key=lambda call: (call.shard, call.start_ms)):
        kind = call.kind.value if call.kind else "call"
        outcome = call.outcome
        note = f", {outcome.value}" if outcome and outcome is not CallOutcome.ANSWERED else ""
        style = "yellow" if note else "green"
        yield _Span(f"shard {call.shard}: {kind}{note}", call.start_ms, call.ms, style)
        if call.retrieve_ms > 0:
            yield _Span("  retrieve", call.retrieve_start_ms, call.retrieve_ms, "blue")
        for each in sorted(call.reads, key=lambda each: each.start_ms):
            yield _Span(f"  read {printable(each.passage_id)}", each.start_ms, each.ms, "blue")


def bar(begin: float, end: float, room: int) -> str:
    """Draws a bar from column `begin` to `end`; a thin line if that is less than a column."""
    if begin >= end:
        return ""
    first, columns = min(round(begin), max(room - 1, 0)), round(end) - round(begin)
    return " " * (_GAP + first) + ("█" * columns or "▏")


def _fit(label: str) -> str:
    """Cuts or pads a label to the width of its column, in terminal cells."""
    text = Text(label)
    text.truncate(_LABEL - 1, overflow="ellipsis")
    text.align("left", _LABEL)
    return text.plain
