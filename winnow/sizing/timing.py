"""Times of a piece of work, and the spread of its repetitions."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from winnow.sizing.units import SHARES


def milliseconds(work: Callable[[], object], repetitions: int) -> list[float]:
    """The times of `repetitions` runs in a row, after one run that warms up."""
    work()
    found = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - started))
    return found


def spread(groups: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Quantiles, at `SHARES`, of times relative to the median of their group."""
    relative = np.concatenate([np.array(group) / median(group) for group in groups])
    return tuple(np.quantile(relative, SHARES).round(4).tolist())


def together(work: Callable[[], object], threads: int, repetitions: int) -> float:
    """Milliseconds of a run in one of `threads` threads that all do the same."""
    work()
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(lambda _: work(), range(repetitions * threads)))
        return 1e3 * (time.perf_counter() - started) / repetitions
