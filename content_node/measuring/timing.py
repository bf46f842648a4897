"""How long a piece of work takes, and how its repetitions differ."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from winnow.sizing.units import SHARES


def milliseconds(work: Callable[[], object], repetitions: int) -> list[float]:
    """Of each repetition, one after the other; the first one, which warms up, is left out."""
    work()
    found = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - started))
    return found


def spread(groups: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Quantiles of times, at `SHARES`, each by the median of its group."""
    relative = np.concatenate([np.array(group) / median(group) for group in groups])
    return tuple(np.quantile(relative, SHARES).round(4).tolist())


def together(work: Callable[[], object], threads: int, repetitions: int) -> float:
    """Milliseconds of a repetition of one thread, while as many threads do the same."""
    work()
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(lambda _: work(), range(repetitions * threads)))
        return 1e3 * (time.perf_counter() - started) / repetitions
