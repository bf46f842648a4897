"""Composes the service that reads texts of callers."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from winnow.bundle import Manifest
from winnow.inference.fair_threads import FairThreads
from winnow.policy.byte_bounded_lru import MIB
from winnow.policy.pace import Pace
from winnow.reading.model import max_question_tokens
from winnow.reading.pool import ReaderPool
from winnow.reading.reader import Reader, open_reader
from winnow.reading.split_reader import SplitReader
from winnow.reading.states_cache import StatesCache
from winnow.reading.warmup import warm_up
from winnow.settings.common import cores
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.reading import read_operations
from winnow.stateless.reading.admission import ReadingAdmission
from winnow.stateless.reading.core import LoadedReader, ReadCore, ReadingBundle
from winnow.stateless.reading.metrics import TextPoolMetrics, TextReadingMetrics
from winnow.stateless.reading.question import QuestionTokeniser
from winnow.stateless.reading.scoring import TextScores
from winnow.stateless.reading.servicer import SERVICE, ReadMessages, ReadServicer
from winnow.stateless.reading.validation import ReadingDefaults
from winnow.telemetry.metrics import CacheMetrics
from winnow.text.language import LanguageCheck
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import read_pb2_grpc

_log = structlog.get_logger("stateless")
_HALF_LIFE = 2.0
"""Seconds after which a measured reading speed counts half."""
_NICE = 5
"""Niceness of the reader threads, so that a busy front refuses calls in time."""


@dataclass(frozen=True, slots=True)
class ReaderOfShards:
    """The reader of the shards in the process of a front, which takes no further memory."""

    pool: ReaderPool
    open: Callable[[], Reader]
    """Opens the reader, if no shard has opened it yet."""


def open_reading(front: Front, shards: ReaderOfShards | None = None) -> FrontPart:
    """Adds the service that reads texts. Its part loads the reader.

    `shards` is the reader of the shards of this process; None to open another one.
    """
    settings, manifest = front.settings, front.bundle.manifest
    metrics, pace = TextReadingMetrics(front.registry), Pace(_HALF_LIFE, time.monotonic)
    admission = ReadingAdmission(
        settings.reader_queue, pace=pace, clock=time.monotonic, metrics=metrics
    )
    front.work.windows = admission
    pool = shards.pool if shards else _open_pool(front)
    core = ReadCore(
        _reading_bundle(manifest),
        pool,
        _question_tokeniser(front),
        admission=admission,
        metrics=metrics,
    )
    threads = FairThreads(1, "texts")
    front.stack.callback(threads.close)
    messages = ReadMessages(core, threads)
    limits = OperationLimits(settings.reader_deadline, admission.refusal)
    front.rejection.add(SERVICE, admission.refusal)
    servicer = ReadServicer(messages, limits.default_deadline)
    read_pb2_grpc.add_ReadServiceServicer_to_server(servicer, front.services)
    front.http_operations.extend(read_operations(messages, limits))
    states = CacheMetrics(front.registry, "winnow_reader_states_cache", "states of texts")

    async def prepare() -> None:
        core.set_reader(await asyncio.to_thread(_load_reader, front, pace, shards, states))
        _log.info("reader loaded", bundle=manifest.name, threads=settings.reader_threads)

    return FrontPart(prepare)


def _open_pool(front: Front) -> ReaderPool:
    threads = front.settings.reader_threads
    pool = ReaderPool(threads, threads, TextPoolMetrics(front.registry), nice=_NICE)
    front.stack.callback(pool.close)
    return pool


def _reading_bundle(manifest: Manifest) -> ReadingBundle:
    return ReadingBundle(
        model=f"{manifest.name}-{manifest.version}",
        scores=TextScores(
            answers=manifest.answer_calibration(), relevance=manifest.effective_text_relevance
        ),
        defaults=ReadingDefaults(
            max_answer_tokens=manifest.reader.max_answer_tokens,
            has_confidence=manifest.confidence is not None,
        ),
    )


def _question_tokeniser(front: Front) -> QuestionTokeniser:
    manifest = front.bundle.manifest
    refuses = front.settings.refuse_unread_languages
    return QuestionTokeniser(
        max_question_tokens(manifest.reader),
        LanguageCheck(manifest.languages),
        refused_unless=manifest.languages if refuses else None,
    )


def _load_reader(
    front: Front, pace: Pace, shards: ReaderOfShards | None, metrics: CacheMetrics
) -> LoadedReader:
    """Opens the reader with a memory for states. It takes seconds: call it in a thread."""
    settings, bundle = front.settings, front.bundle
    tokenizer = Tokenizer(bundle.tokenizer)
    if shards is not None:
        reader = shards.open()
    else:
        choosing = front.runtimes.chooser(bundle.manifest.name)
        options = replace(settings.inference, runs=settings.reader_threads, chooser=choosing)
        reader = open_reader(bundle, tokenizer.special, options)
        pace.assume(warm_up(reader) / min(settings.reader_threads, cores()))
    budget, model = settings.reader_states_mb * MIB, reader.model
    if budget and isinstance(model, SplitReader):
        cache = StatesCache(model.lower, budget, metrics)
        reader = reader.with_model(model.with_window_states(cache.window_states))
    return LoadedReader(reader, tokenizer)
