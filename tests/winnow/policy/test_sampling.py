"""Which of many log lines are written."""

from manual_clock import ManualClock

from winnow.policy.sampling import PERIOD, Sampler


def taken(sampler: Sampler[str], kind: str, times: int) -> int:
    return sum(sampler.allows(kind) for _ in range(times))


def test_the_first_lines_of_a_kind_are_written_and_the_rest_counted() -> None:
    clock = ManualClock()
    sampler: Sampler[str] = Sampler(3, clock)
    assert taken(sampler, "refused", 10) == 3
    assert taken(sampler, "failed", 2) == 2
    assert sampler.withheld() == {}, "the second is not over"
    clock.advance(PERIOD)
    assert sampler.withheld() == {"refused": 7}
    assert sampler.withheld() == {}, "they are told once"


def test_every_second_has_its_own_lines() -> None:
    clock = ManualClock()
    sampler: Sampler[str] = Sampler(3, clock)
    for _ in range(4):
        assert taken(sampler, "refused", 5) == 3
        clock.advance(PERIOD)
    assert sampler.withheld() == {"refused": 8}, "none is forgotten if nobody asked"


def test_it_says_when_there_is_something_to_tell() -> None:
    clock = ManualClock()
    sampler: Sampler[str] = Sampler(1, clock)
    assert taken(sampler, "refused", 1) == 1
    assert sampler.due() is None
    assert taken(sampler, "refused", 1) == 0
    clock.advance(PERIOD / 4)
    assert sampler.due() == PERIOD * 3 / 4
    clock.advance(PERIOD)
    assert sampler.due() == 0


def test_at_the_end_all_is_told() -> None:
    sampler: Sampler[str] = Sampler(1, ManualClock())
    taken(sampler, "refused", 5)
    assert sampler.withheld(unfinished=True) == {"refused": 4}
    assert sampler.due() is None
