"""Measures how accurate a split reader is with states of fewer bits.

Reads the gold paragraphs of the development sets with states in several roundings. 8 bits have one
scale for each token, as states of older versions have. 4 bits are the states that an index stores.
Prints exact match, and compares each question with 8 bits: how many answers differ, and how much
the scores of the spans and their confidences change. The roundings of a question share a run of the
lower layers.

    python -m bench state-bits --data ../shared/data --every dev-squad=4
"""

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from models.data import DEVELOPMENT, DataDirectory, Question
from models.progress import track
from winnow.bundle import Bundle, load_bundle
from winnow.cli.output import console as open_console
from winnow.cli.output import print_json, table
from winnow.domain.passage import Hit, Passage
from winnow.domain.reading import Reading
from winnow.inference.options import InferenceOptions
from winnow.inference.stop_signal import StopSignal
from winnow.packaged import default_bundle
from winnow.reading import open_reader
from winnow.reading.four_bits import MAX_LEVEL
from winnow.reading.lower_layers import PassageWindow
from winnow.reading.passage_states import PassageStates, quantise
from winnow.reading.split_reader import SplitReader
from winnow.reading.stored_passage import StoredPassage
from winnow.settings.common import cores
from winnow.text.scores import exact_match
from winnow.text.tokenizer import Tokenizer

_CACHED_WINDOWS = 64
Rounding = Callable[[NDArray[np.float32]], PassageStates]


@dataclass(frozen=True, slots=True)
class _Read:
    """A question and what was read in its gold paragraph."""

    question: Question
    reading: Reading
    confidence: float

    @property
    def is_right(self) -> bool:
        return exact_match(self.reading.answer, self.question.answers)


class _RoundingReader:
    """Reads a passage once with each rounding. Safe to use from several threads."""

    def __init__(self, bundle: Bundle, roundings: Sequence[Rounding]) -> None:
        self._tokenizer, self._manifest = Tokenizer(bundle.tokenizer), bundle.manifest
        self._roundings = roundings
        options = InferenceOptions(runs=cores())
        self._reader = open_reader(bundle, self._tokenizer.special, options)
        if not isinstance(self._reader.model, SplitReader):
            raise SystemExit(f"{bundle.directory} has no split reader")
        self._model = self._reader.model
        self._exact: dict[tuple[int, ...], NDArray[np.float32]] = {}

    def read(self, question: Question) -> list[_Read]:
        """Returns the reading of the gold paragraph with each rounding."""
        confidence = self._manifest.confidence
        readings = [self._read_rounded(question, each) for each in self._roundings]
        if len(self._exact) > _CACHED_WINDOWS:
            self._exact.clear()  # another thread may compute a window again
        return [
            _Read(question, each, confidence.of(each) if confidence else 0.0) for each in readings
        ]

    def _read_rounded(self, question: Question, rounding: Rounding) -> Reading:
        gold = question.gold
        assert gold is not None
        stored = StoredPassage(
            Passage("", gold.title, gold.text),
            self._tokenizer.tokenise(gold.title).ids,
            self._tokenizer.tokenise(gold.text),
        )
        limit = self._manifest.encoder.max_question_tokens - 2
        ids = self._tokenizer.tokenise(question.text).ids[:limit]
        model = self._model.with_window_states(partial(self._window_states, rounding))
        hit = Hit(row=0, passage_id="", distance=0.0, hybrid_distance=0.0)
        max_answer_tokens = self._manifest.reader.max_answer_tokens
        return self._reader.with_model(model).read(ids, stored, hit, max_answer_tokens)

    def _window_states(
        self, rounding: Rounding, window: PassageWindow, stop: StopSignal | None
    ) -> tuple[PassageStates, bool]:
        key = tuple(window.ids)
        exact = self._exact.get(key)
        if exact is None:
            exact = self._exact[key] = self._model.lower.exact_window_states(window, stop)
        return rounding(exact), False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="directory of the public data")
    parser.add_argument(
        "--bundle", type=Path, default=default_bundle(), help="bundle with a split reader"
    )
    parser.add_argument(
        "--every",
        action="append",
        default=[],
        metavar="SET=N",
        help="read every N-th question of a set; repeat",
    )
    parser.add_argument(
        "--set", action="append", choices=DEVELOPMENT, help="set to read, default both; repeat"
    )


def run(options: argparse.Namespace) -> int:
    """Prints the accuracy of each rounding for each set."""
    steps = {name: int(step) for name, step in (each.split("=") for each in options.every)}
    data = DataDirectory(options.data)
    roundings: dict[str, Rounding] = {"8 bits": _to_8_bits, "4 bits": quantise}
    reader = _RoundingReader(load_bundle(options.bundle), list(roundings.values()))
    rows = []
    for name in options.set or DEVELOPMENT:
        questions = data.development(name)[:: steps.get(name, 1)]
        golds = [each for each in questions if each.gold is not None]
        with ThreadPoolExecutor(cores()) as pool:
            each_read = track(pool.map(reader.read, golds), name, len(golds))
            read = list(zip(*each_read, strict=True))
        for states, own in zip(roundings, read, strict=True):
            rows.append({"set": name, "states": states, **_compared(read[0], own)})
    if options.json:
        print_json(rows)
    else:
        columns = tuple(rows[0])
        lines = [[str(row[column]) for column in columns] for row in rows]
        open_console().print(table(columns, lines))
    return 0


def _compared(before: Sequence[_Read], now: Sequence[_Read]) -> dict[str, float]:
    pairs = list(zip(before, now, strict=True))
    return {
        "questions": len(now),
        "exact match": round(100 * mean(each.is_right for each in now), 2),
        "gained": sum(own.is_right and not old.is_right for old, own in pairs),
        "lost": sum(old.is_right and not own.is_right for old, own in pairs),
        "other answers": sum(old.reading.answer != own.reading.answer for old, own in pairs),
        "mean confidence": round(mean(each.confidence for each in now), 4),
        "mean change of confidence": round(
            mean(abs(old.confidence - own.confidence) for old, own in pairs), 4
        ),
        "mean change of score": round(
            mean(abs(old.reading.score - own.reading.score) for old, own in pairs), 4
        ),
    }


def _to_8_bits(states: NDArray[np.float32]) -> PassageStates:
    magnitudes = np.maximum(np.abs(states).max(axis=1), np.float32(1e-8))
    scales = magnitudes / np.float32(MAX_LEVEL)
    return PassageStates(np.rint(states / scales[:, None]).astype(np.int8), scales)
