"""A reading core over the fake networks of a split reader, with the tokenizer of the bundle."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from fake_split_reader import ENTRY, SPECIAL, LowerSession, UpperSession, lower
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from winnow.bundle.manifest import ScoreEntry
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.confidence import Confidence
from winnow.domain.text_reading import TextToRead
from winnow.domain.text_relevance import TextRelevance
from winnow.domain.threshold import AnswerThreshold
from winnow.inference.stop_signal import StopSignal
from winnow.packaged import default_bundle
from winnow.policy.byte_bounded_lru import MIB
from winnow.policy.pace import Pace
from winnow.reading.model import max_question_tokens
from winnow.reading.pool import ReaderPool
from winnow.reading.reader import Reader
from winnow.reading.split_reader import SplitReader
from winnow.reading.states_cache import StatesCache
from winnow.stateless.reading.admission import ReadingAdmission
from winnow.stateless.reading.core import LoadedReader, ReadCore, ReadingBundle
from winnow.stateless.reading.metrics import TextPoolMetrics, TextReadingMetrics
from winnow.stateless.reading.question import QuestionTokeniser
from winnow.stateless.reading.scoring import TextScores
from winnow.stateless.reading.validation import ReadingDefaults
from winnow.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer(default_bundle() / "tokenizer.json")
WEIGHTS = ScoreEntry(relevance=0.5, span=1.0, distance=-1.0, no_answer_below=0.0)
RELEVANCE = TextRelevance(logit=0.5, words=3.0, bias=-1.0)
QUESTION = "Who built the bridge?"


def texts(*plain: str) -> tuple[TextToRead, ...]:
    return tuple(map(TextToRead, plain))


class HeldUpperSession(UpperSession):
    """Runs until it is stopped, if `held`; counts its runs."""

    def __init__(self) -> None:
        self.held, self.runs = False, 0
        self.begun = threading.Semaphore(0)

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        self.runs += 1
        if self.held:
            assert stop is not None
            ended = threading.Event()
            with stop.on_stop(ended.set):
                self.begun.release()
                assert ended.wait(60)
        return super().run(inputs, stop)


class TextReadingCore:
    """A `ReadCore` and its parts."""

    def __init__(self, *, threads: int = 2, max_windows: int = 4_000, states_mb: int = 1) -> None:
        self.registry, self.lower, self.upper = (
            CollectorRegistry(),
            LowerSession(),
            HeldUpperSession(),
        )
        layers = lower(self.lower)
        self.plain = Reader(SplitReader(layers, self.upper), WEIGHTS)
        self.cache = StatesCache(layers, states_mb * MIB)
        remembering = SplitReader(layers, self.upper, self.cache.window_states)
        self.reader = self.plain.with_model(remembering)
        self.pool = ReaderPool(threads, threads, TextPoolMetrics(self.registry))
        metrics = TextReadingMetrics(self.registry)
        self.admission = ReadingAdmission(
            max_windows, pace=Pace(2.0, time.monotonic), clock=time.monotonic, metrics=metrics
        )
        self.core = ReadCore(
            ReadingBundle(
                model="fake-1",
                scores=TextScores(
                    answers=AnswerCalibration(
                        threshold=AnswerThreshold(WEIGHTS.no_answer_below),
                        confidence=Confidence(relevance=0.0, span=1.0, distance=0.0, bias=-2.0),
                    ),
                    relevance=RELEVANCE,
                ),
                defaults=ReadingDefaults(max_answer_tokens=4, has_confidence=True),
            ),
            self.pool,
            QuestionTokeniser(max_question_tokens(ENTRY)),
            admission=self.admission,
            metrics=metrics,
        )
        self.core.set_reader(LoadedReader(self.reader, TOKENIZER))

    def sample(self, name: str) -> float:
        return self.registry.get_sample_value(name) or 0.0


@contextlib.contextmanager
def reading_core(**options: int) -> Iterator[TextReadingCore]:
    """A core whose threads end with the block."""
    made = TextReadingCore(**options)
    try:
        yield made
    finally:
        made.pool.close()


assert SPECIAL.cls == TOKENIZER.special.cls, "the fake networks have the special tokens of BERT"
