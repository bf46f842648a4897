"""Runs seeds in worker processes.

This module imports nothing of the cluster: in a worker the stand-ins are installed first.
"""

import importlib
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.util import Finalize
from typing import Any

_WAITING = 4
"""Seeds for each worker that are submitted at a time, so that Ctrl-C ends soon."""


def run_in_workers(
    work: str, seeds: Sequence[int], jobs: int, is_stopped: Callable[[], bool], *arguments: Any
) -> Iterator[Any]:
    """Yields the result of a function for each seed, in the order in which they are there.

    `work` is the name of a function of `simulation.command`. It is called as
    `work(seed, *arguments)`. Once `is_stopped` is true, only the seeds that run are finished.
    """
    left = deque(seeds)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare)
    running: set[Future[Any]] = set()
    try:
        while left or running:
            while left and len(running) < _WAITING * jobs:
                running.add(pool.submit(_run, work, left.popleft(), *arguments))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            if is_stopped():
                left.clear()
                running = {future for future in running if not future.cancel()}
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches workers, too
    importlib.import_module("simulation.stand_ins").install()
    Finalize(None, importlib.import_module("simulation.fixtures").remove, exitpriority=1)


def _run(work: str, seed: int, *arguments: Any) -> Any:
    return getattr(importlib.import_module("simulation.command"), work)(seed, *arguments)
