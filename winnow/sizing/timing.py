"""Measures the time of a function, and the spread of repeated runs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from winnow.sizing.units import SPREAD_QUANTILES


def time_runs(work: Callable[[], object], repetitions: int) -> list[float]:
    """Returns the milliseconds of each of `repetitions` runs in a row, after a warm-up run."""
    work()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - started))
    return times


def relative_spread(groups: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Returns quantiles (`SPREAD_QUANTILES`) of the times, each relative to its group's median."""
    relative = np.concatenate([np.array(group) / median(group) for group in groups])
    return tuple(np.quantile(relative, SPREAD_QUANTILES).round(4).tolist())


def parallel_run_ms(work: Callable[[], object], threads: int, repetitions: int) -> float:
    """Returns the mean milliseconds of a run while `threads` threads do the same in parallel."""
    work()
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(lambda _: work(), range(repetitions * threads)))
        return 1e3 * (time.perf_counter() - started) / repetitions
