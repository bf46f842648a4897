"""Reads a passage on every core, so that caches are as on a machine that answers questions."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

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

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def _read(self, _: int) -> None:
        read_synthetic(self._reader, self._passage, _QUESTION_TOKENS)
