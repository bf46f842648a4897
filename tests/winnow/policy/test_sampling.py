"""Which of many log lines are written."""

from manual_clock import ManualClock

from winnow.policy.sampling import PERIOD, Kind, LogSampler

REFUSED: Kind = ("refused",)
FAILED: Kind = ("failed",)


def taken(sampler: LogSampler, kind: Kind, times: int, most: int = 3) -> int:
    return sum(sampler.allows(kind, most) for _ in range(times))


def test_the_first_lines_of_a_kind_are_written_and_the_rest_counted() -> None:
    clock = ManualClock()
    sampler = LogSampler(clock)
    assert taken(sampler, REFUSED, 10) == 3
    assert taken(sampler, FAILED, 2) == 2
    assert sampler.withheld_lines() == {}, "the second is not over"
    clock.advance(PERIOD)
    assert sampler.withheld_lines() == {REFUSED: 7}
    assert sampler.withheld_lines() == {}, "they are told once"


def test_every_second_has_its_own_lines() -> None:
    clock = ManualClock()
    sampler = LogSampler(clock)
    for _ in range(4):
        assert taken(sampler, REFUSED, 5) == 3
        clock.advance(PERIOD)
    assert sampler.withheld_lines() == {REFUSED: 8}, "none is forgotten if nobody asked"


def test_it_says_when_there_is_something_to_tell() -> None:
    clock = ManualClock()
    sampler = LogSampler(clock)
    assert taken(sampler, REFUSED, 1, most=1) == 1
    assert sampler.seconds_until_report() is None
    assert taken(sampler, REFUSED, 1, most=1) == 0
    clock.advance(PERIOD / 4)
    assert sampler.seconds_until_report() == PERIOD * 3 / 4
    clock.advance(PERIOD)
    assert sampler.seconds_until_report() == 0


def test_at_the_end_all_is_told() -> None:
    sampler = LogSampler(ManualClock())
    taken(sampler, REFUSED, 5, most=1)
    assert sampler.withheld_lines(include_current=True) == {REFUSED: 4}
    assert sampler.seconds_until_report() is None
