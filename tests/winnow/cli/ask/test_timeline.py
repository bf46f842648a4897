"""When everything was that was done for a question, as text."""

import io

import pytest
from rich.console import Console
from scripted_front import full_reply

from winnow.cli.ask.render import render_reply
from winnow.cli.ask.timeline import render_timeline
from winnow.client import CallKind, CallOutcome, ReadTiming, ShardCall, Timings
from winnow.client.reply_messages import reply_of_message


def lines(timings: Timings, width: int = 90) -> list[str]:
    return [line.plain for line in render_timeline(timings, width)]


def test_every_stage_call_and_read_is_where_it_was_shard_by_shard() -> None:
    assert lines(reply_of_message("?", full_reply()).timings) == [
        "                                   from     took",
        "tokenise                            0.0      0.2  ▏",
        "queue                               0.2      0.5  █",
        "encode                              0.8      4.0   ████",
        "retrieve                            5.0      2.0       ██",
        "read                                7.0     32.0         ████████████████████████████████",
        "merge                              39.0      0.2                                         ▏",
        "shard 0: retrieve                   5.0      2.0       ██",
        "  retrieve                          5.5      1.5        █",
        "shard 0: read                       7.0     32.0         ████████████████████████████████",
        "  read combining                    8.0     12.0          ████████████",
        "  read other                       20.0     18.0                      ██████████████████",
        "shard 1: retrieve, abandoned        5.0     34.0       ██████████████████████████████████",
        "total                                       40.0",
    ]


def test_a_cached_answer_has_few_timings() -> None:
    known = Timings(tokenise_ms=0.25, total_ms=1.0)
    assert [line.split()[0] for line in lines(known)] == ["from", "tokenise", "total"]


def test_a_call_that_ends_after_the_answer_still_fits() -> None:
    """Its shard was late, and nobody waited for it."""
    late = ShardCall(
        shard=0, kind=CallKind.SEARCH, outcome=CallOutcome.ABANDONED, start_ms=0.0, ms=400.0
    )
    assert max(map(len, lines(Timings(total_ms=10.0, calls=(late,))))) <= 90


def test_names_of_passages_break_no_column_and_reach_no_terminal() -> None:
    read = ReadTiming(passage_id="\x1b[2J" + "語" * 40, start_ms=0.0, ms=1.0)
    call = ShardCall(shard=12, kind=None, outcome=None, start_ms=0.0, ms=1.0, reads=(read,))
    _, whole, shown_read, _ = lines(Timings(total_ms=1.0, calls=(call,)))
    assert whole.startswith("shard 12: call  ")
    assert "\x1b" not in shown_read
    console = Console(file=io.StringIO(), width=200)
    assert console.measure(shown_read).maximum == console.measure(whole).maximum


def test_no_time_at_all_has_no_bars() -> None:
    assert not any("█" in line for line in lines(Timings()))


@pytest.mark.parametrize("width", [1, 20, 49, 50])
def test_a_narrow_terminal_has_figures_without_bars(width: int) -> None:
    found = lines(reply_of_message("?", full_reply()).timings, width)
    assert len(found) == 14
    assert not any("██" in line for line in found)


def test_the_timeline_follows_the_answer_if_asked_for() -> None:
    reply = reply_of_message("?", full_reply())
    console = Console(file=io.StringIO(), width=90, highlight=False)
    console.print(render_reply(reply, 90, plain=True, timings=True), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "40.0 ms, 10 passages read, 4 of them needed\n\n" + " " * 35 + "from" in text
    assert "shard 1: retrieve, abandoned" in text
