"""How a soak judges the memory of nodes over time."""

import itertools

import pytest

from bench.soak import Sample, memory_growth, random_writes


def samples(*megabytes: float) -> list[Sample]:
    """Returns a sample every ten seconds."""
    return [
        Sample(seconds=10.0 * n, node=0, rss_mb=2 * each, anonymous_mb=each, merges=n)
        for n, each in enumerate(megabytes)
    ]


def test_memory_used_temporarily_by_merges_is_no_growth() -> None:
    assert memory_growth(samples(*[100.0, 100.0, 140.0] * 20), 0, 600) == 0


def test_growth_is_measured_after_the_settling_time() -> None:
    held = [50.0] * 20 + [100.0] * 20 + [130.0] * 20
    assert memory_growth(samples(*held), 0, 600) == pytest.approx(1.6)
    assert memory_growth(samples(*held), 200, 600) == pytest.approx(0.3)


def test_a_soak_that_is_too_short_raises_an_error() -> None:
    with pytest.raises(ValueError, match="too few samples"):
        memory_growth(samples(100.0, 100.0), 0, 600)


def test_writes_keep_the_size_of_a_shard() -> None:
    some = list(itertools.islice(random_writes(passages=1_000, seed=1), 2_000))
    added = {each.id for each in some if each.id.startswith("fed-")}
    assert len(added) <= 250
    assert 0.2 < sum(each.put is None for each in some) / len(some) < 0.3
