"""Plans that fail are shortened."""

from collections.abc import Sequence

from simulation.shrinking import shrink


def test_only_the_items_that_matter_stay() -> None:
    def fails(items: Sequence[int]) -> bool:
        return {3, 17} <= set(items)

    assert shrink(range(40), fails) == [3, 17]


def test_the_number_of_runs_is_limited() -> None:
    runs = []

    def fails(items: Sequence[int]) -> bool:
        runs.append(items)
        return len(items) > 1

    assert len(shrink(range(100), fails, max_runs=5)) < 100
    assert len(runs) == 5
