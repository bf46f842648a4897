"""Reads the same passage again and again, on every core before each measured call.

So caches are as on a machine that answers questions.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import fmean

from winnow.bundle import load_bundle
from winnow.reading import open_reader
from winnow.reading.warmup import read_synthetic, synthetic_passage, warm_up
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer

_TOKENS, _QUESTION_TOKENS = 128, 8


class Disturbance(AbstractContextManager["Disturbance"]):
    """Reads the same passage on every core at each call. It ends with the context."""

    def __init__(self, bundle: Path) -> None:
        opened = load_bundle(bundle)
        self._reader = open_reader(opened, Tokenizer(opened.tokenizer).special)
        warm_up(self._reader)
        self._passage = synthetic_passage(_TOKENS)
        self._pool = ThreadPoolExecutor(cores())

    def __call__(self) -> None:
        list(self._pool.map(self._read, range(cores())))

    def read_for(self, seconds: float) -> tuple[list[float], list[float]]:
        """Reads for some time on one core, and on all cores, in turn.

        Returns the processor times of the reads on one core, and the mean of each on all cores.
        """
        end, alone, together = time.perf_counter() + seconds, list[float](), list[float]()
        while time.perf_counter() < end:
            alone.append(self._read(0))
            together.append(fmean(self._pool.map(self._read, range(cores()))))
        return alone, together

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def _read(self, _: int) -> float:
        """Returns the processor time in seconds."""
        began = time.thread_time()
        read_synthetic(self._reader, self._passage, _QUESTION_TOKENS)
        return time.thread_time() - began
