"""What must hold while nodes die: rows in, findings out."""

import math

import pytest

from bench.faults import judge
from bench.faults.judge import Criterion, Observed
from bench.faults.rows import HEALTH, OK, REFUSED, Row, answered
from winnow.v1 import answer_pb2

WHOLE = Row(0.0, 0.1)
PART = Row(0.0, 0.1, OK, 0.66, complete=False, why="it hangs")
LOST = Row(0.0, 2.0, "DEADLINE_EXCEEDED", 0.0, complete=False)
REFUSAL = Row(0.0, 0.002, REFUSED, 0.0, complete=False)
DUMB = Row(0.0, 0.1, OK, 0.66, complete=False, explained=False)


def at(seconds: float, complete: bool) -> Row:
    return Row(seconds, 0.1, OK, 1.0 if complete else 0.66, complete)


def took(*milliseconds: float) -> list[Row]:
    return [Row(0.0, each / 1e3) for each in milliseconds]


def holds(criterion: Criterion, rows: list[Row], **marks: float) -> bool | None:
    return criterion(Observed({"phase": rows}, marks)).holds


def test_figures_of_a_phase() -> None:
    rows = [WHOLE, PART, LOST, REFUSAL]
    assert judge.availability(rows) == 0.5
    assert judge.completeness(rows) == 0.25
    assert judge.coverage(rows) == pytest.approx(0.83)
    assert judge.latency(rows, 0.99, REFUSED) == 0.002


def test_nothing_is_no_success() -> None:
    assert (judge.availability([]), judge.completeness([]), judge.coverage([])) == (0, 0, 0)
    assert math.isnan(judge.latency([LOST], 0.5))


def test_quantiles_are_by_nearest_rank() -> None:
    rows = took(*range(1, 101))
    assert judge.latency(rows, 0.5) == 0.050
    assert judge.latency(rows, 0.99) == 0.099
    assert judge.latency(rows, 1.0) == 0.100


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([WHOLE, PART], True),
        ([WHOLE, LOST], False),
        ([WHOLE, REFUSAL], False),
        ([Row(0.0, 2.2)], False),
        ([], False),
    ],
)
def test_all_in_time(rows: list[Row], expected: bool) -> None:
    assert holds(judge.all_in_time("phase", 2.0), rows) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([PART, PART], True), ([PART, LOST], True), ([WHOLE], False), ([DUMB], False), ([], False)],
)
def test_what_is_left_is_covered_and_the_rest_explained(rows: list[Row], expected: bool) -> None:
    assert holds(judge.partial_answers("phase"), rows, left=0.665) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([at(9, False), at(11, False), at(12, True), at(13, True)], True),
        ([at(11, True), at(12.5, False), at(13, True)], False),
        ([at(11, True)], False),  # nothing was asked two seconds later
        ([], False),
    ],
)
def test_complete_again_soon_after_its_return(rows: list[Row], expected: bool) -> None:
    assert holds(judge.complete_again("phase", 2.0), rows, returned=10.0) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([WHOLE] * 3, True), ([WHOLE] * 2, False), ([WHOLE] * 3 + [PART], False), ([LOST] * 3, False)],
)
def test_all_complete(rows: list[Row], expected: bool) -> None:
    assert holds(judge.all_complete("phase", 3), rows) is expected


def test_none_failed_counts_what_was_lost_by_reason() -> None:
    finding = judge.none_failed("phase", 3)(Observed({"phase": [PART, LOST, REFUSAL]}))
    assert not finding.holds
    assert "1 DEADLINE_EXCEEDED, 1 RESOURCE_EXHAUSTED" in finding.said
    assert "1 answered in part (it hangs)" in finding.said
    assert holds(judge.none_failed("phase", 2), [WHOLE, PART])
    assert not holds(judge.none_failed("phase", 3), [WHOLE, PART])


@pytest.mark.parametrize(("after", "expected"), [(100, True), (190, True), (210, False)])
def test_p99_is_compared_with_the_healthy_one(after: float, expected: bool) -> None:
    seen = Observed({"healthy": took(*[100] * 500), "hurt": took(*[after] * 500)})
    assert judge.p99_within(2.0, "hurt")(seen).holds is expected


def test_a_p99_whose_interval_lies_on_both_sides_of_the_bar_tells_nothing() -> None:
    healthy, hurt = took(*range(1000, 1500)), took(*range(1000, 1490), *range(2000, 4000, 200))
    finding = judge.p99_within(2.0, "hurt")(Observed({"healthy": healthy, "hurt": hurt}))
    assert finding.holds is None
    assert "of 500 answers" in finding.said


def test_a_p99_of_too_few_answers_tells_nothing() -> None:
    seen = Observed({"healthy": took(*[100] * 499), "hurt": took(*[100] * 500)})
    finding = judge.p99_within(2.0, "hurt")(seen)
    assert finding.holds is None
    assert "too few: 500 each are judged" in finding.said


@pytest.mark.parametrize(
    ("held", "code"),
    [
        ((True, True), 0),
        ((True, None), 3),
        ((True, None, False), 1),
        ((), 0),
    ],
)
def test_the_exit_code_says_whether_all_held_or_could_not_be_told(
    held: tuple[bool | None, ...], code: int
) -> None:
    assert judge.exit_code(judge.Finding(each, "") for each in held) == code


def test_without_an_answer_no_latency_is_within_anything() -> None:
    seen = Observed({"healthy": took(1), "hurt": [LOST]})
    assert judge.p99_within(2.0, "hurt")(seen).holds is False


def test_marks_are_compared_with_numbers_and_with_each_other() -> None:
    assert holds(judge.mark_within("load", 0.05), [], load=0.05)
    assert not holds(judge.mark_within("load", 0.05), [], load=0.06)
    assert holds(judge.mark_within_mark("busy", "passage"), [], busy=0.1, passage=0.1)
    assert not holds(judge.mark_within_mark("busy", "passage"), [], busy=0.2, passage=0.1)


def test_large_marks_are_written_out() -> None:
    finding = judge.mark_within("memory", 64, " MB")(Observed({}, {"memory": 1180.4}))
    assert finding.said == "memory 1,180 MB, at most 64 MB"


def test_goodput_counts_complete_answers_of_what_is_possible() -> None:
    marks = {"peak": 10.0, "phase seconds": 2.0}
    assert holds(judge.goodput("phase", 0.85), [WHOLE] * 17 + [REFUSAL] * 60, **marks)
    assert not holds(judge.goodput("phase", 0.85), [WHOLE] * 16 + [PART] * 60, **marks)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([WHOLE, REFUSAL], True),
        ([WHOLE, REFUSAL, LOST], False),
        ([Row(0.0, 0.02, REFUSED, 0.0, complete=False)], False),
        ([WHOLE], False),  # nobody was refused, so nothing is known of refusals
    ],
)
def test_refusals_come_at_once(rows: list[Row], expected: bool) -> None:
    assert holds(judge.refused_within("phase", 0.01), rows) is expected


def test_refusals_are_shown_beside_what_any_call_takes() -> None:
    seen = Observed({"phase": [REFUSAL], HEALTH: took(4, 5, 30)})
    finding = judge.refused_within("phase", 0.01)(seen)
    assert finding.holds
    assert "health checks meanwhile 30.0 ms, median 5.0 ms" in finding.said


def test_a_reply_is_a_row() -> None:
    status = answer_pb2.ShardCoverage
    coverage = answer_pb2.Coverage(
        passages_known=10,
        passages_searched=6,
        shards=[
            status(shard=0, status=status.STATUS_SEARCHED),
            status(shard=1, status=status.STATUS_TIMEOUT, reason="late"),
        ],
    )
    reply = answer_pb2.AnswerResponse(coverage=coverage)
    assert answered(reply) == Row(0.0, 0.0, OK, 0.6, complete=False, why="late")
    coverage.shards[1].reason = ""
    assert not answered(answer_pb2.AnswerResponse(coverage=coverage)).explained
