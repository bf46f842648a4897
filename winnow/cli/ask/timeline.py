"""When each stage of a question, each call to a shard and each read ran, as lines of bars."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from winnow.cli.output import harmless
from winnow.client import CallOutcome, ShardCall, Timings

_LABEL, _FIGURE, _GAP = 30, 9, 2
_LONGEST = 60


class _Span(NamedTuple):
    label: str
    start: float
    ms: float
    style: str = "cyan"


def timeline(timings: Timings, width: int) -> Iterator[Text]:
    """Lines for a terminal of `width` columns: stages of the front node, then calls by shard."""
    spans = [*_stages(timings), *_calls(timings.calls)]
    room = max(min(width - _LABEL - 2 * _FIGURE - _GAP, _LONGEST), 0)
    whole = max([timings.total_ms, *(each.start + each.ms for each in spans), 1e-9])
    yield Text(f"{'':{_LABEL}}{'from':>{_FIGURE}}{'took':>{_FIGURE}}", style="dim")
    for each in spans:
        end = each.start + each.ms
        yield Text.assemble(
            (_fitting(each.label), "dim"),
            f"{each.start:{_FIGURE}.1f}{each.ms:{_FIGURE}.1f}",
            (bar(each.start * room / whole, end * room / whole, room), each.style),
        )
    yield Text.assemble(
        (_fitting("total"), "dim"), (f"{timings.total_ms:{2 * _FIGURE}.1f}", "bold")
    )


def _stages(timings: Timings) -> Iterator[_Span]:
    """The stages that took time. Tokenising, waiting and encoding follow one another."""
    encoding = timings.tokenise_ms + timings.queue_ms
    every = (
        _Span("tokenise", 0.0, timings.tokenise_ms),
        _Span("queue", timings.tokenise_ms, timings.queue_ms),
        _Span("encode", encoding, timings.encode_ms),
        _Span("retrieve", timings.retrieve_start_ms, timings.retrieve_ms),
        _Span("read", timings.read_start_ms, timings.read_ms),
        _Span("merge", timings.merge_start_ms, timings.merge_ms),
    )
    return (each for each in every if each.ms > 0)


def _calls(calls: tuple[ShardCall, ...]) -> Iterator[_Span]:
    for call in sorted(calls, key=lambda call: (call.shard, call.start_ms)):
        kind = call.kind.value if call.kind else "call"
        ended = call.outcome
        how = f", {ended.value}" if ended and ended is not CallOutcome.ANSWERED else ""
        style = "yellow" if how else "green"
        yield _Span(f"shard {call.shard}: {kind}{how}", call.start_ms, call.ms, style)
        if call.retrieve_ms > 0:
            yield _Span("  retrieve", call.retrieve_start_ms, call.retrieve_ms, "blue")
        for each in sorted(call.reads, key=lambda each: each.start_ms):
            yield _Span(f"  read {harmless(each.passage_id)}", each.start_ms, each.ms, "blue")


def bar(begin: float, end: float, room: int) -> str:
    """A bar from one column to another; thin where a stage took less than a column."""
    if begin >= end:
        return ""
    first, columns = min(round(begin), max(room - 1, 0)), round(end) - round(begin)
    return " " * (_GAP + first) + ("█" * columns or "▏")


def _fitting(label: str) -> str:
    """The label, cut or filled to the width of its column in a terminal's cells."""
    text = Text(label)
    text.truncate(_LABEL - 1, overflow="ellipsis")
    text.align("left", _LABEL)
    return text.plain
