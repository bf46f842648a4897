"""Promises of scenarios, as judged from the outcomes of questions."""

import math
from dataclasses import replace

import pytest

from bench.scenarios import criteria
from bench.scenarios.criteria import Criterion
from bench.scenarios.measurements import (
    HEALTH,
    REFUSED,
    Measurements,
    QuestionOutcome,
    answered_outcome,
    availability,
    completeness,
    failed_outcome,
    latency_quantile,
    mean_coverage,
)
from winnow.v1 import answer_pb2

WHOLE = QuestionOutcome(0.0, 0.1)
PART = QuestionOutcome(0.0, 0.1, coverage=0.66, complete=False, reason="it hangs")
LOST = replace(failed_outcome("DEADLINE_EXCEEDED"), seconds=2.0)
REFUSAL = replace(failed_outcome(REFUSED), seconds=0.002)
UNEXPLAINED = QuestionOutcome(0.0, 0.1, coverage=0.66, complete=False, has_reasons=False)


def at(seconds: float, complete: bool) -> QuestionOutcome:
    return QuestionOutcome(seconds, 0.1, coverage=1.0 if complete else 0.66, complete=complete)


def took(*milliseconds: float) -> list[QuestionOutcome]:
    return [QuestionOutcome(0.0, each / 1e3) for each in milliseconds]


def holds(criterion: Criterion, ended: list[QuestionOutcome], **marks: float) -> bool | None:
    return criterion(Measurements({"phase": ended}, marks)).holds


def test_figures_of_a_phase() -> None:
    some = [WHOLE, PART, LOST, REFUSAL]
    assert availability(some) == 0.5
    assert completeness(some) == 0.25
    assert mean_coverage(some) == pytest.approx(0.83)
    assert latency_quantile(some, 0.99, REFUSED) == 0.002


def test_a_phase_without_questions_is_no_success() -> None:
    assert (availability([]), completeness([]), mean_coverage([])) == (
        0,
        0,
        0,
    )
    assert math.isnan(latency_quantile([LOST], 0.5))


def test_quantiles_are_by_nearest_rank() -> None:
    some = took(*range(1, 101))
    assert latency_quantile(some, 0.5) == 0.050
    assert latency_quantile(some, 0.99) == 0.099
    assert latency_quantile(some, 1.0) == 0.100


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([WHOLE, PART], True),
        ([WHOLE, LOST], False),
        ([WHOLE, REFUSAL], False),
        ([QuestionOutcome(0.0, 2.2)], False),
        ([], False),
    ],
)
def test_all_in_time(ended: list[QuestionOutcome], expected: bool) -> None:
    assert holds(criteria.all_answered_by("phase", 2.0), ended) is expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([PART, PART], True),
        ([PART, LOST], True),
        ([WHOLE], False),
        ([UNEXPLAINED], False),
        ([], False),
    ],
)
def test_partial_answers_cover_the_remaining_shards_and_give_a_reason_for_each_lost_one(
    ended: list[QuestionOutcome], expected: bool
) -> None:
    assert holds(criteria.partial_answers("phase"), ended, left=0.665) is expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([at(9, False), at(11, False), at(12, True), at(13, True)], True),
        ([at(11, True), at(12.5, False), at(13, True)], False),
        ([at(11, True)], False),  # no question two seconds later
        ([], False),
    ],
)
def test_answers_are_complete_soon_after_the_shard_returned(
    ended: list[QuestionOutcome], expected: bool
) -> None:
    assert holds(criteria.complete_after_return("phase", 2.0), ended, returned=10.0) is expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [([WHOLE] * 3, True), ([WHOLE] * 2, False), ([WHOLE] * 3 + [PART], False), ([LOST] * 3, False)],
)
def test_all_complete(ended: list[QuestionOutcome], expected: bool) -> None:
    assert holds(criteria.all_complete("phase", 3), ended) is expected


def test_none_failed_counts_failures_by_status() -> None:
    finding = criteria.none_failed("phase", 3)(Measurements({"phase": [PART, LOST, REFUSAL]}))
    assert not finding.holds
    assert "1 DEADLINE_EXCEEDED, 1 RESOURCE_EXHAUSTED" in finding.summary
    assert "1 answered in part (it hangs)" in finding.summary
    assert holds(criteria.none_failed("phase", 2), [WHOLE, PART])
    assert not holds(criteria.none_failed("phase", 3), [WHOLE, PART])


@pytest.mark.parametrize(("after", "expected"), [(100, True), (190, True), (210, False)])
def test_a_p99_is_compared_with_the_healthy_p99(after: float, expected: bool) -> None:
    measurements = Measurements({"healthy": took(*[100] * 500), "hurt": took(*[after] * 500)})
    assert criteria.p99_within(2.0, "hurt")(measurements).holds is expected


def test_a_p99_whose_interval_contains_the_bound_is_inconclusive() -> None:
    healthy, hurt = took(*range(1000, 1500)), took(*range(1000, 1490), *range(2000, 4000, 200))
    finding = criteria.p99_within(2.0, "hurt")(Measurements({"healthy": healthy, "hurt": hurt}))
    assert finding.holds is None
    assert "of 500 answers" in finding.summary


def test_a_p99_of_too_few_answers_is_inconclusive() -> None:
    measurements = Measurements({"healthy": took(*[100] * 499), "hurt": took(*[100] * 500)})
    finding = criteria.p99_within(2.0, "hurt")(measurements)
    assert finding.holds is None
    assert "too few answers: 500 per phase are needed" in finding.summary


@pytest.mark.parametrize(
    ("held", "code"),
    [
        ((True, True), 0),
        ((True, None), 3),
        ((True, None, False), 1),
        ((), 0),
    ],
)
def test_the_exit_code_distinguishes_broken_from_inconclusive_promises(
    held: tuple[bool | None, ...], code: int
) -> None:
    assert criteria.exit_code(criteria.Finding(each, "") for each in held) == code


def test_a_phase_without_answers_breaks_a_promise_of_latency() -> None:
    measurements = Measurements({"healthy": took(1), "hurt": [LOST]})
    assert criteria.p99_within(2.0, "hurt")(measurements).holds is False


def test_values_are_compared_with_numbers_and_with_each_other() -> None:
    assert holds(criteria.value_at_most("load", 0.05), [], load=0.05)
    assert not holds(criteria.value_at_most("load", 0.05), [], load=0.06)
    assert holds(criteria.value_at_most_value("busy", "passage"), [], busy=0.1, passage=0.1)
    assert not holds(criteria.value_at_most_value("busy", "passage"), [], busy=0.2, passage=0.1)


def test_large_values_are_shown_with_all_digits() -> None:
    finding = criteria.value_at_most("memory", 64, " MB")(Measurements({}, {"memory": 1180.4}))
    assert finding.summary == "memory 1,180 MB, at most 64 MB"


def test_goodput_is_complete_answers_as_a_share_of_the_peak() -> None:
    marks = {"peak": 10.0, "phase seconds": 2.0}
    assert holds(criteria.min_goodput("phase", 0.85), [WHOLE] * 17 + [REFUSAL] * 60, **marks)
    assert not holds(criteria.min_goodput("phase", 0.85), [WHOLE] * 16 + [PART] * 60, **marks)


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([WHOLE, REFUSAL], True),
        ([WHOLE, REFUSAL, LOST], False),
        ([replace(failed_outcome(REFUSED), seconds=0.02)], False),
        ([WHOLE], False),  # without refusals, their latency is unknown
    ],
)
def test_refused_within(ended: list[QuestionOutcome], expected: bool) -> None:
    assert holds(criteria.refused_within("phase", 0.01), ended) is expected


def test_refusals_are_shown_beside_health_checks() -> None:
    measurements = Measurements({"phase": [REFUSAL], HEALTH: took(4, 5, 30)})
    finding = criteria.refused_within("phase", 0.01)(measurements)
    assert finding.holds
    assert "health checks: p99 30.0 ms, median 5.0 ms" in finding.summary


def test_a_reply_becomes_a_row() -> None:
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
    assert answered_outcome(reply) == QuestionOutcome(
        0.0, 0.0, coverage=0.6, complete=False, reason="late"
    )
    coverage.shards[1].reason = ""
    assert not answered_outcome(answer_pb2.AnswerResponse(coverage=coverage)).has_reasons
