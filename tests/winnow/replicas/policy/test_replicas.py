"""Which replica gets a request, and which is left out."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import EjectionState, OutlierSettings
from winnow.replicas.policy.replicas import AnyReplica, Attempt, Replica, Replicas, ReplicaSettings

OUTLIERS = OutlierSettings(
    consecutive_failures=3,
    base_ejection_seconds=2.0,
    latency_factor=5.0,
    min_samples=4,
    max_ejected_share=0.5,
)
SETTINGS = ReplicaSettings(half_life=5.0, outliers=OUTLIERS)


def replicas(
    names: str,
    clock: ManualClock | None = None,
    seed: int = 1,
    settings: ReplicaSettings = SETTINGS,
) -> Replicas:
    return Replicas(list(names), settings, clock or ManualClock(), random.Random(seed))


def take(own: Replicas, excluding: str = "") -> Attempt:
    attempt = own.take(excluding)
    assert attempt is not None
    return attempt


def send(
    own: Replicas, address: str, outcome: ReplicaOutcome, seconds: float | None = None
) -> None:
    """One whole request to a certain replica, whether or not it would have been chosen."""
    others = [name for name in own.by_address if name != address]
    own.release(take(own, "".join(others)), outcome, seconds)


def out(own: Replicas) -> set[str]:
    return {a for a, r in own.by_address.items() if r.record.state is not EjectionState.ACTIVE}


def eject(own: Replicas, address: str) -> None:
    for _ in range(OUTLIERS.consecutive_failures):
        send(own, address, ReplicaOutcome.FAILED)
    assert address in out(own)


def test_without_replicas_there_is_none() -> None:
    assert replicas("").take() is None


def test_the_excluded_are_not_taken() -> None:
    own = replicas("ab")
    assert {take(own, "a").replica.address for _ in range(20)} == {"b"}
    assert own.take("ab") is None


@pytest.mark.parametrize(("preferred", "taken"), [("ab", "b"), ("a", "a"), ("b", "b")])
def test_a_retry_may_repeat_at_a_replica_if_no_other_is_preferred(
    preferred: str, taken: str
) -> None:
    class Preferred(AnyReplica):
        def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
            return [r for r in replicas if r.address in preferred] or replicas

    attempt = replicas("ab").take("a", preference=Preferred(), repeat=True)
    assert attempt is not None
    assert attempt.replica.address == taken
    again = replicas("a").take("a", repeat=True)
    assert again is not None


@given(st.integers(0, 999))
def test_of_two_the_one_with_fewer_requests_in_hand_is_taken(seed: int) -> None:
    own = replicas("ab", seed=seed)
    first, second = take(own), take(own)
    assert first.replica is not second.replica


def test_requests_in_hand_stay_balanced_over_many_replicas() -> None:
    own = replicas("abcdefgh")
    taken = Counter(take(own).replica.address for _ in range(800))
    assert sum(taken.values()) == 800
    assert max(taken.values()) - min(taken.values()) <= 10, "one random choice would give about 50"


def test_a_replica_that_returns_with_requests_in_hand_is_the_same_one() -> None:
    own = replicas("ab")
    attempt = take(own, "b")
    own.update("b")
    assert own.take("b") is None
    own.update("b")
    own.update("ab")
    assert own.by_address["a"] is attempt.replica
    assert own.by_address["a"].outstanding == 1


def test_a_replica_that_returns_with_nothing_in_hand_is_a_new_one() -> None:
    own = replicas("ab")
    attempt = take(own, "b")
    own.update("b")
    own.release(attempt, ReplicaOutcome.FAILED)
    own.update("ab")
    assert own.by_address["a"] is not attempt.replica
    assert not own.by_address["a"].record.is_suspect


def test_the_slower_gets_fewer_requests() -> None:
    own = replicas("ab")
    for address, seconds in (("a", 0.01), ("b", 0.03)):
        send(own, address, ReplicaOutcome.ANSWERED, seconds)
    taken = Counter(take(own).replica.address for _ in range(40))
    assert taken == {"a": 30, "b": 10}


def test_a_replica_without_a_latency_counts_as_typical() -> None:
    taken: Counter[str] = Counter()
    for seed in range(200):
        own = replicas("ab", seed=seed)
        send(own, "a", ReplicaOutcome.ANSWERED, 0.01)
        taken[take(own).replica.address] += 1
    assert min(taken["a"], taken["b"]) > 60, "neither shunned nor flooded"


def test_a_slow_replica_is_asked_again_after_a_while() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    send(own, "a", ReplicaOutcome.ANSWERED, 0.01)
    send(own, "b", ReplicaOutcome.ANSWERED, 0.04)
    assert take(own).replica.address == "a"
    clock.advance(3 * SETTINGS.half_life)
    send(own, "a", ReplicaOutcome.ANSWERED, 0.01)
    assert take(own).replica.address == "b"


def test_an_ejected_replica_gets_nothing_and_half_open_one_probe() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    eject(own, "b")
    assert {take(own).replica.address for _ in range(20)} == {"a"}
    clock.advance(OUTLIERS.base_ejection_seconds)
    taken = [take(own) for _ in range(20)]
    assert not any(attempt.probe for attempt in taken), "something brief may come, and costs less"
    assert own.take_for_hedge("a", allow_busy=True) is None, "a hedge is no probe"
    first, *others = [own.take(brief=True) for _ in range(20)]
    assert first is not None
    assert (first.probe, first.replica.address) == (True, "b")
    assert all(attempt and attempt.replica.address == "a" for attempt in others)


def test_where_nothing_brief_comes_anything_probes_after_a_while() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    eject(own, "b")
    clock.advance(OUTLIERS.base_ejection_seconds + OUTLIERS.brief_probe_period)
    taken = [take(own) for _ in range(20)]
    assert [attempt.replica.address for attempt in taken if attempt.probe] == ["b"]


def test_a_request_that_failed_once_is_no_probe_while_others_are_well() -> None:
    clock = ManualClock()
    own = replicas("abcd", clock)
    eject(own, "c")
    clock.advance(OUTLIERS.base_ejection_seconds + OUTLIERS.brief_probe_period)
    eject(own, "d")
    for _ in range(20):
        attempt = own.take("a", brief=True)
        assert attempt is not None
        assert attempt.replica.address == "b"
    assert take(own, excluding="ab").replica.address == "c", "half-open, and not just ejected"


def test_a_late_request_goes_only_to_an_idle_replica_and_an_urgent_one_to_any() -> None:
    own = replicas("ab")
    assert own.take_for_hedge("a", allow_busy=False) is not None
    assert own.take_for_hedge("a", allow_busy=False) is None
    assert own.take_for_hedge("a", allow_busy=True) is not None
    assert own.take_for_hedge("ab", allow_busy=True) is None


def test_a_probe_that_is_answered_brings_it_back() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    eject(own, "b")
    clock.advance(OUTLIERS.base_ejection_seconds)
    send(own, "b", ReplicaOutcome.ANSWERED, 0.01)
    assert not out(own)
    assert {take(own).replica.address for _ in range(4)} == {"a", "b"}


def test_where_no_other_is_left_one_that_is_out_is_the_last_resort() -> None:
    own = replicas("ab")
    eject(own, "b")
    assert take(own, excluding="a").probe
    assert own.take_for_hedge("a", allow_busy=True) is None, "a hedge is better not sent"


@pytest.mark.parametrize(
    ("count", "share", "most"),
    [(1, 1.0, 0), (2, 0.5, 1), (2, 1.0, 1), (3, 0.1, 1), (4, 0.5, 2), (5, 0.5, 2), (5, 1.0, 4)],
)
def test_only_a_share_is_out_at_once_and_never_all(count: int, share: float, most: int) -> None:
    settings = ReplicaSettings(
        outliers=OutlierSettings(consecutive_failures=1, max_ejected_share=share)
    )
    own = replicas("abcde"[:count], settings=settings)
    for address in list(own.by_address) * 3:
        send(own, address, ReplicaOutcome.FAILED)
    assert len(out(own)) == most


def answer(own: Replicas, address: str, seconds: float, times: int) -> None:
    for _ in range(times):
        send(own, address, ReplicaOutcome.ANSWERED, seconds)


@pytest.mark.parametrize(("slowness", "gone"), [(4.9, set()), (5.1, {"c"})])
def test_a_replica_much_slower_than_the_others_is_ejected(slowness: float, gone: set[str]) -> None:
    own = replicas("abc")
    answer(own, "a", 0.010, OUTLIERS.min_samples)
    answer(own, "b", 0.010, OUTLIERS.min_samples)
    answer(own, "c", 0.010 * slowness, OUTLIERS.min_samples)
    assert out(own) == gone


@pytest.mark.parametrize(
    ("fast", "slow"), [(OUTLIERS.min_samples, OUTLIERS.min_samples - 1), (1, 20)]
)
def test_nobody_is_judged_by_a_few_answers(fast: int, slow: int) -> None:
    own = replicas("ab")
    answer(own, "a", 0.01, fast)
    answer(own, "b", 1.0, slow)
    assert not out(own)


def test_a_cluster_that_is_slow_all_over_has_no_outlier() -> None:
    own = replicas("abc")
    for seconds in (0.01, 1.0):
        for _ in range(30):
            for address in own.by_address:
                send(own, address, ReplicaOutcome.ANSWERED, seconds)
    assert not out(own)


def test_a_probe_as_slow_as_an_outlier_does_not_bring_it_back() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    answer(own, "a", 0.01, OUTLIERS.min_samples)
    eject(own, "b")
    clock.advance(OUTLIERS.base_ejection_seconds)
    send(own, "b", ReplicaOutcome.ANSWERED, 0.1)
    assert own.by_address["b"].record.state is EjectionState.EJECTED


def test_who_comes_back_is_not_judged_by_how_slow_it_was() -> None:
    clock = ManualClock()
    own = replicas("ab", clock)
    answer(own, "a", 0.01, OUTLIERS.min_samples)
    answer(own, "b", 0.10, OUTLIERS.min_samples)
    clock.advance(OUTLIERS.base_ejection_seconds)
    answer(own, "b", 0.01, OUTLIERS.min_samples)
    assert not out(own)
    assert own.by_address["b"].latency.value == pytest.approx(0.01)


def test_requests_in_hand_when_it_was_ejected_tell_nothing_about_it_now() -> None:
    own = replicas("ab")
    old = take(own, excluding="a")
    eject(own, "b")
    own.release(old, ReplicaOutcome.ANSWERED, 9.0)
    assert own.by_address["b"].latency.value is None
    assert out(own) == {"b"}


def test_only_answers_tell_how_fast_a_replica_is() -> None:
    own = replicas("ab")
    for outcome in set(ReplicaOutcome) - {ReplicaOutcome.ANSWERED}:
        send(own, "a", outcome, 0.001)
    assert own.by_address["a"].latency.value is None


def test_what_is_known_of_a_replica_survives_a_change_of_the_others() -> None:
    own = replicas("ab")
    send(own, "a", ReplicaOutcome.ANSWERED, 0.02)
    in_hand = take(own, excluding="a")
    kept = own.by_address["a"]
    own.update("ac")
    assert own.by_address["a"] is kept
    assert set(own.by_address) == {"a", "c"}
    own.release(in_hand, ReplicaOutcome.ANSWERED, 0.01)
    own.update("ab")
    assert own.by_address["b"].outstanding == 0


@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(st.floats(0, 3), st.sampled_from(ReplicaOutcome), st.booleans()), max_size=80
    ),
    st.integers(0, 99),
)
def test_whatever_happens_a_request_finds_a_replica_and_is_counted_once(
    count: int, history: list[tuple[float, ReplicaOutcome, bool]], seed: int
) -> None:
    clock = ManualClock()
    own = replicas("abcde"[:count], clock, seed)
    in_hand: list[Attempt] = []
    for pause, outcome, start in history:
        clock.advance(pause)
        if start or not in_hand:
            in_hand.append(take(own))
        else:
            own.release(in_hand.pop(0), outcome, pause)
        assert len(out(own)) <= max(count // 2, 1) * (count > 1)
        held = Counter(attempt.replica.address for attempt in in_hand)
        assert {a: r.outstanding for a, r in own.by_address.items() if r.outstanding} == held
