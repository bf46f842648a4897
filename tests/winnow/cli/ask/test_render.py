"""Replies as text."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from scripted_front import full_reply

from winnow.cli.ask.render import render_reply
from winnow.client import (
    HeadPrediction,
    LabelScore,
    Reply,
    ShardCoverage,
    ShardStatus,
)
from winnow.client.reply_messages import reply_of_message


@pytest.fixture
def reply() -> Reply:
    return reply_of_message("Who opened the café?", full_reply())


def text(reply: Reply, width: int = 80, plain: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(render_reply(reply, width, plain), soft_wrap=plain)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_parts_of_a_reply_have_their_order(reply: Reply) -> None:
    assert text(reply).splitlines() == [
        "Zoe\u0308 Nowak",
        "",
        "Łódź",
        "The cafe\u0301 in Łódź was opened by **Zoe\u0308 Nowak** in 1923.",
        "cafés.pdf, page 4, Łódź (https://example.org/cafés.pdf)",
        "confidence 75%, score 8.50, passage combining, shard 0",
        "",
        "other candidates",
        "   6%  Łódź",
        "",
        "not complete: 7 of 12 passages were searched",
        "  shard 1: timeout (no reply in 2 s)",
        "the question was too long: its end was not used",
        "",
        "40.0 ms, 10 passages read, 4 of them needed",
    ]


@pytest.mark.parametrize("needed", [10, None], ids=["all needed", "an old front"])
def test_without_needed_counts_only_the_passages_read_are_shown(
    reply: Reply, needed: int | None
) -> None:
    lines = text(replace(reply, passages_needed=needed)).splitlines()
    assert "40.0 ms, 10 passages read" in lines


@pytest.mark.parametrize(
    ("confidence", "said"),
    [(0.0, "<1%"), (0.009, "<1%"), (0.01, "1%"), (0.4, "40%"), (0.991, ">99%"), (1.0, ">99%")],
)
def test_no_answer_is_called_certain_or_impossible(
    reply: Reply, confidence: float, said: str
) -> None:
    best, other = (replace(each, confidence=confidence) for each in reply.answers)
    lines = text(replace(reply, answers=(best, other))).splitlines()
    assert f"confidence {said}, score 8.50, passage combining, shard 0" in lines
    assert f"{said:>5}  Łódź" in lines


def test_a_bundle_without_confidence_has_none_shown(reply: Reply) -> None:
    lines = text(
        replace(reply, answers=tuple(replace(a, confidence=None) for a in reply.answers))
    ).splitlines()
    assert "score 8.50, passage combining, shard 0" in lines
    assert "score 2.50  Łódź" in lines


def test_the_shown_size_is_the_answer(reply: Reply) -> None:
    best = replace(reply.answers[0], shown_text="The café\nwas opened.", source=None)
    lines = text(replace(reply, answers=(best,))).splitlines()
    assert lines[:2] == ["The café", "was opened."]
    assert "pdf" not in "".join(lines)


def test_it_says_where_nothing_was_read_for_a_known_answer(reply: Reply) -> None:
    known = replace(reply, cached=True, passages_read=0)
    assert "40.0 ms, answered from the cache" in text(known).splitlines()


def test_on_a_terminal_the_answer_stands_in_a_frame(reply: Reply) -> None:
    lines = text(reply, plain=False).splitlines()
    assert lines[0].startswith("╭")
    assert "Zoe\u0308 Nowak" in lines[2]
    assert not any("**" in line for line in lines)


def test_where_no_answer_is_likely_all_are_candidates(reply: Reply) -> None:
    lines = text(replace(reply, has_answer=False)).splitlines()
    assert lines[:5] == ["no answer is likely", "", "candidates", "  75%  Zoe\u0308 Nowak  cafés.pdf, page 4, Łódź",
                         "   6%  Łódź"]  # fmt: skip


def test_without_any_answer_there_are_no_candidates(reply: Reply) -> None:
    shown = text(replace(reply, has_answer=False, answers=()))
    assert "no answer is likely" in shown
    assert "candidates" not in shown


def test_a_complete_reply_says_nothing_of_coverage(reply: Reply) -> None:
    whole = replace(reply, coverage=replace(reply.coverage, complete=True))
    assert "complete" not in text(whole)
    assert "shard 1" not in text(whole)


def test_of_many_missing_shards_some_are_named_and_the_others_counted(reply: Reply) -> None:
    missing = tuple(
        ShardCoverage(shard=n, passages=1, status=ShardStatus.UNAVAILABLE) for n in range(30)
    )
    shown = text(replace(reply, coverage=replace(reply.coverage, shards=missing)))
    assert "  shard 7: unavailable\n  and 22 more\n" in shown
    assert "shard 8" not in shown


def test_fewer_passages_under_pressure_are_said(reply: Reply) -> None:
    dimmed = text(replace(reply, passages_granted=4, passages_needed=4))
    assert "overloaded: 4 of 10 passages were admitted for reading" in dimmed


def test_an_overload_is_not_shown_where_enough_was_read(reply: Reply) -> None:
    stopped = replace(reply, passages_granted=4, passages_needed=2)
    assert "overloaded" not in text(stopped)
    # who reads all, and an old front, would have read more
    for max_loss in (0.0, None):
        assert "overloaded" in text(replace(stopped, max_loss=max_loss))
    assert "overloaded" in text(replace(stopped, passages_needed=None))


@pytest.mark.parametrize("width", [1, 10, 25])
@pytest.mark.parametrize("plain", [False, True])
def test_a_narrow_terminal_shows_every_word(reply: Reply, width: int, plain: bool) -> None:
    words = "".join(text(reply, width, plain).split())
    assert "candidates" in words.replace("│", "")


def test_timings_are_shown_only_where_they_are_asked_for(reply: Reply) -> None:
    for asked in (False, True):
        console = Console(file=io.StringIO(), width=80, highlight=False)
        console.print(render_reply(reply, 80, plain=True, timings=asked), soft_wrap=True)
        assert isinstance(console.file, io.StringIO)
        assert ("retrieve" in console.file.getvalue()) == asked


def test_predictions_for_the_question_follow_the_answers(reply: Reply) -> None:
    said = HeadPrediction(head_id="intent", version=3, labels=(LabelScore("ask", 0.5, True),))
    lines = text(replace(reply, heads=(said,))).splitlines()
    at = lines.index("intent  version 3")
    assert lines[at - 2 : at] == ["   6%  Łódź", ""]
    assert lines[at + 1].split()[:3] == ["✓", "ask", "0.500"]
