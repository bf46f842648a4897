"""One replica's record: active, ejected, half-open, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import EjectionState, OutlierSettings, ReplicaRecord

SETTINGS = OutlierSettings(
    consecutive_failures=3, base_ejection_seconds=2.0, max_ejection_seconds=5.0, reset_after=60.0
)
A_MOMENT = 0.25


def serve(record: ReplicaRecord, *outcomes: ReplicaOutcome) -> None:
    """Requests one after another; ejects whenever it is deserved."""
    for outcome in outcomes:
        if record.record_outcome(record.record_start(), outcome):
            record.eject()


def ejected(clock: ManualClock, settings: OutlierSettings = SETTINGS) -> ReplicaRecord:
    record = ReplicaRecord(settings, clock)
    serve(record, *[ReplicaOutcome.FAILED] * settings.consecutive_failures)
    assert record.state is EjectionState.EJECTED
    return record


def half_open(clock: ManualClock) -> ReplicaRecord:
    record = ejected(clock)
    clock.advance(SETTINGS.base_ejection_seconds)
    assert record.state is EjectionState.HALF_OPEN
    return record


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ([ReplicaOutcome.FAILED] * 2, EjectionState.ACTIVE),
        ([ReplicaOutcome.FAILED] * 3, EjectionState.EJECTED),
        ([ReplicaOutcome.BEATEN] * 3, EjectionState.EJECTED),
        (
            [ReplicaOutcome.FAILED, ReplicaOutcome.BEATEN, ReplicaOutcome.FAILED],
            EjectionState.EJECTED,
        ),
        (
            [
                ReplicaOutcome.FAILED,
                ReplicaOutcome.FAILED,
                ReplicaOutcome.ANSWERED,
                ReplicaOutcome.FAILED,
            ],
            EjectionState.ACTIVE,
        ),
        (
            [
                ReplicaOutcome.FAILED,
                ReplicaOutcome.FAILED,
                ReplicaOutcome.REFUSED,
                ReplicaOutcome.FAILED,
            ],
            EjectionState.ACTIVE,
        ),
        (
            [
                ReplicaOutcome.FAILED,
                ReplicaOutcome.FAILED,
                ReplicaOutcome.ABANDONED,
                ReplicaOutcome.FAILED,
            ],
            EjectionState.EJECTED,
        ),
        ([ReplicaOutcome.ABANDONED] * 9, EjectionState.ACTIVE),
        ([ReplicaOutcome.REFUSED] * 9, EjectionState.ACTIVE),
        ([ReplicaOutcome.OUTLIER], EjectionState.EJECTED),
    ],
)
def test_consecutive_failures_eject(outcomes: list[ReplicaOutcome], state: EjectionState) -> None:
    record = ReplicaRecord(SETTINGS, ManualClock())
    serve(record, *outcomes)
    assert record.state is state


@pytest.mark.parametrize(
    ("outcomes", "suspect"),
    [
        ([], False),
        ([ReplicaOutcome.ANSWERED], False),
        ([ReplicaOutcome.BEATEN], True),
        ([ReplicaOutcome.FAILED], True),
        ([ReplicaOutcome.BEATEN, ReplicaOutcome.ABANDONED], True),
        ([ReplicaOutcome.BEATEN, ReplicaOutcome.ANSWERED], False),
        ([ReplicaOutcome.FAILED] * 3, True),
    ],
)
def test_a_replica_is_suspect_from_a_failure_to_its_next_answer(
    outcomes: list[ReplicaOutcome], suspect: bool
) -> None:
    record = ReplicaRecord(SETTINGS, ManualClock())
    serve(record, *outcomes)
    assert record.is_suspect is suspect


def test_a_replica_that_is_probed_is_suspect_until_it_answers() -> None:
    record = half_open(ManualClock())
    assert record.is_suspect
    serve(record, ReplicaOutcome.ANSWERED)
    assert not record.is_suspect


def test_an_ejected_replica_serves_nobody_until_its_time_is_over() -> None:
    clock = ManualClock()
    record = ejected(clock)
    clock.advance(SETTINGS.base_ejection_seconds - A_MOMENT)
    assert not record.wants_probe(brief=True)
    clock.advance(A_MOMENT)
    assert record.wants_probe(brief=True)


def test_for_a_while_only_brief_requests_probe() -> None:
    clock = ManualClock()
    record = half_open(clock)
    clock.advance(SETTINGS.brief_probe_period - A_MOMENT)
    assert (record.wants_probe(brief=True), record.wants_probe(brief=False)) == (True, False)
    clock.advance(A_MOMENT)
    assert record.wants_probe(brief=False)


def test_an_active_replica_needs_no_probe() -> None:
    assert not ReplicaRecord(SETTINGS, ManualClock()).wants_probe(brief=True)


def test_a_half_open_replica_is_probed_by_one_request_at_a_time() -> None:
    record = half_open(ManualClock())
    assert record.record_start(), "it is a probe"
    assert not record.wants_probe(brief=True)


@pytest.mark.parametrize("outcome", [ReplicaOutcome.ANSWERED, ReplicaOutcome.REFUSED])
def test_a_probe_that_shows_life_brings_it_back(outcome: ReplicaOutcome) -> None:
    record = half_open(ManualClock())
    serve(record, outcome)
    assert record.state is EjectionState.ACTIVE
    serve(record, *[ReplicaOutcome.FAILED] * (SETTINGS.consecutive_failures - 1))
    assert record.state is EjectionState.ACTIVE, "its count starts again at 0"


@pytest.mark.parametrize(
    "outcome", [ReplicaOutcome.FAILED, ReplicaOutcome.BEATEN, ReplicaOutcome.OUTLIER]
)
def test_one_failed_probe_ejects_again(outcome: ReplicaOutcome) -> None:
    record = half_open(ManualClock())
    serve(record, outcome)
    assert record.state is EjectionState.EJECTED


def test_an_abandoned_probe_lets_the_next_one_through() -> None:
    record = half_open(ManualClock())
    serve(record, ReplicaOutcome.ABANDONED)
    assert record.state is EjectionState.HALF_OPEN
    assert record.wants_probe(brief=True)


def lasts(record: ReplicaRecord, clock: ManualClock) -> float:
    """Seconds until an ejected replica is half-open, to the quarter."""
    began = clock()
    while record.state is EjectionState.EJECTED:
        clock.advance(A_MOMENT)
    return clock() - began


def test_every_ejection_in_a_row_lasts_longer_up_to_the_longest() -> None:
    clock = ManualClock()
    record = ejected(clock)
    seconds = []
    for _ in range(4):
        seconds.append(lasts(record, clock))
        serve(record, ReplicaOutcome.FAILED)
    assert seconds == [2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(("served", "seconds"), [(59.0, 4.0), (60.0, 2.0)])
def test_earlier_ejections_are_forgiven_after_long_service(served: float, seconds: float) -> None:
    clock = ManualClock()
    record = half_open(clock)
    serve(record, ReplicaOutcome.ANSWERED)
    clock.advance(served)
    serve(record, *[ReplicaOutcome.FAILED] * SETTINGS.consecutive_failures)
    assert lasts(record, clock) == seconds


@pytest.mark.parametrize("outcome", list(ReplicaOutcome))
def test_requests_sent_before_the_ejection_change_nothing_after_it(outcome: ReplicaOutcome) -> None:
    clock = ManualClock()
    record = ReplicaRecord(SETTINGS, clock)
    first, second = record.record_start(), record.record_start()
    serve(record, *[ReplicaOutcome.FAILED] * SETTINGS.consecutive_failures)
    assert not record.record_outcome(first, outcome)
    assert not record.wants_probe(brief=True)
    clock.advance(SETTINGS.base_ejection_seconds)
    assert not record.record_outcome(second, outcome)
    assert record.state is EjectionState.HALF_OPEN
    assert record.wants_probe(brief=True)


def test_a_last_resort_that_answers_comes_back_at_once() -> None:
    record = ejected(ManualClock())
    serve(record, ReplicaOutcome.ANSWERED)
    assert record.state is EjectionState.ACTIVE


def test_a_last_resort_that_fails_makes_the_ejection_no_longer() -> None:
    clock = ManualClock()
    record = ejected(clock)
    serve(record, *[ReplicaOutcome.FAILED] * 10)
    assert lasts(record, clock) == SETTINGS.base_ejection_seconds


steps = st.lists(
    st.tuples(st.floats(0, 4), st.sampled_from(ReplicaOutcome), st.booleans()), max_size=60
)


@given(steps)
def test_at_most_one_probe_is_in_hand_where_only_those_that_serve_are_asked(
    history: list[tuple[float, ReplicaOutcome, bool]],
) -> None:
    clock = ManualClock()
    record = ReplicaRecord(SETTINGS, clock)
    in_hand: list[bool] = []
    for pause, outcome, start in history:
        clock.advance(pause)
        probes = record.wants_probe(brief=True)
        if start and (probes or record.state is EjectionState.ACTIVE):
            in_hand.append(record.record_start())
        elif in_hand and record.record_outcome(in_hand.pop(0), outcome):
            record.eject()
        assert sum(in_hand) <= 1


@given(steps)
def test_a_replica_that_answers_is_active_again_after_the_longest_ejection(
    history: list[tuple[float, ReplicaOutcome, bool]],
) -> None:
    clock = ManualClock()
    record = ReplicaRecord(SETTINGS, clock)
    for pause, outcome, _ in history:
        clock.advance(pause)
        serve(record, outcome)
    clock.advance(SETTINGS.max_ejection_seconds)
    assert record.state is EjectionState.ACTIVE or record.wants_probe(brief=True)
    serve(record, ReplicaOutcome.ANSWERED)
    assert record.state is EjectionState.ACTIVE
