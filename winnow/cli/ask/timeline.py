"""When each stage, each call to a shard and each read of a question was, one below the other."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from winnow.cli.ask.words import harmless
from winnow.client import CallOutcome, ShardCall, Timings

_LABEL, _FIGURE, _GAP = 30, 9, 2
_LONGEST = 60


class _Piece(NamedTuple):
    label: str
    start: float
    ms: float
    style: str = "cyan"


def timeline(timings: Timings, width: int) -> Iterator[Text]:
    """Lines for a terminal of `width` columns: stages of the front, then calls shard by shard."""
    found = [*_stages(timings), *_calls(timings.calls)]
    room = max(min(width - _LABEL - 2 * _FIGURE - _GAP, _LONGEST), 0)
    whole = max([timings.total_ms, *(each.start + each.ms for each in found), 1e-9])
    yield Text(f"{'':{_LABEL}}{'from':>{_FIGURE}}{'took':>{_FIGURE}}", style="dim")
    for each in found:
        end = each.start + each.ms
        yield Text.assemble(
            (_fitting(each.label), "dim"),
            f"{each.start:{_FIGURE}.1f}{each.ms:{_FIGURE}.1f}",
            (bar(each.start * room / whole, end * room / whole, room), each.style),
        )
    yield Text.assemble(
        (_fitting("total"), "dim"), (f"{timings.total_ms:{2 * _FIGURE}.1f}", "bold")
    )


def _stages(timings: Timings) -> Iterator[_Piece]:
    """Those that took time; the front tokenises, waits and encodes one after the other."""
    encoding = timings.tokenise_ms + timings.queue_ms
    every = (
        _Piece("tokenise", 0.0, timings.tokenise_ms),
        _Piece("queue", timings.tokenise_ms, timings.queue_ms),
        _Piece("encode", encoding, timings.encode_ms),
        _Piece("retrieve", timings.retrieve_start_ms, timings.retrieve_ms),
        _Piece("read", timings.read_start_ms, timings.read_ms),
        _Piece("merge", timings.merge_start_ms, timings.merge_ms),
    )
    return (each for each in every if each.ms > 0)


def _calls(calls: tuple[ShardCall, ...]) -> Iterator[_Piece]:
    for call in sorted(calls, key=lambda call: (call.shard, call.start_ms)):
        kind = call.kind.value if call.kind else "call"
        ended = call.outcome
        how = f", {ended.value}" if ended and ended is not CallOutcome.ANSWERED else ""
        style = "yellow" if how else "green"
        yield _Piece(f"shard {call.shard}: {kind}{how}", call.start_ms, call.ms, style)
        if call.retrieve_ms > 0:
            yield _Piece("  retrieve", call.retrieve_start_ms, call.retrieve_ms, "blue")
        for each in sorted(call.reads, key=lambda each: each.start_ms):
            yield _Piece(f"  read {harmless(each.passage_id)}", each.start_ms, each.ms, "blue")


def bar(begin: float, end: float, room: int) -> str:
    """A bar from one column to another; thin where a stage took some time, but not a column."""
    if begin >= end:
        return ""
    first, columns = min(round(begin), max(room - 1, 0)), round(end) - round(begin)
    return " " * (_GAP + first) + ("█" * columns or "▏")


def _fitting(label: str) -> str:
    """As wide as the column, in a terminal's cells."""
    text = Text(label)
    text.truncate(_LABEL - 1, overflow="ellipsis")
    text.align("left", _LABEL)
    return text.plain
