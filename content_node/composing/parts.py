"""The objects that all shards of a process share: reader, threads, admission, metrics."""

import asyncio
import threading
import time
from dataclasses import dataclass, replace
from functools import cached_property, partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.admission import NodeLoad
from winnow.content_node.archiving.archives import Archives
from winnow.content_node.joint_retrieval import JointRetrieval
from winnow.content_node.late_interaction.background import BackgroundTokens
from winnow.content_node.late_interaction.computed_tokens import ComputedTokens
from winnow.content_node.late_interaction.passage_tokens import (
    PassageTokens,
    open_passage_tokens,
)
from winnow.content_node.loading_threads import LoadingThreads
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.settings import NodeSettings
from winnow.content_node.transfer.remote import PeerNodes
from winnow.deadline import Clock
from winnow.errors import ArtefactError
from winnow.heap import HeapTrimmer, trim_function
from winnow.inference.niceness import lower_priority
from winnow.inference.options import InferenceOptions
from winnow.policy.pace import Pace
from winnow.reading import Reader, open_reader
from winnow.reading.pool import ReaderPool
from winnow.reading.warmup import warm_up
from winnow.settings.common import cores
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.text.tokenizer import Tokenizer

_log = structlog.get_logger("content_node")
_RETRY_SECONDS = 60.0
"""Seconds after which opening the model of token vectors is tried again."""
_BACKGROUND_NICE = 10
"""Niceness of the thread that computes token vectors, so that questions have priority."""
_HALF_LIFE = 2.0
"""Seconds after which a measured reading speed counts half. A call is shorter, and changes of the
machine's load take longer.
"""


class SharedReader:
    """The reader of all shards of a process; the first shard that is loaded opens it."""

    def __init__(
        self, settings: NodeSettings, bundle: Bundle, options: InferenceOptions, pace: Pace
    ) -> None:
        """`pace` gets the first estimate of the reading speed."""
        self._settings, self._bundle = settings, bundle
        self._options, self._pace = options, pace
        self._lock = threading.Lock()
        self._reader: Reader | None = None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The bundle's tokenizer, opened by the first use. Raises ArtefactError if that fails."""
        return Tokenizer(self._bundle.tokenizer)

    def open_warm(self) -> Reader:
        """Returns the reader, opened and warmed up by the first call.

        Safe to use from several threads. Raises ArtefactError if it cannot be opened.
        """
        with self._lock:
            if self._reader is None:
                settings, special = self._settings, self.tokenizer.special
                reader = open_reader(self._bundle, special, self._options, settings.max_tokens)
                # measured with one thread; under load every core reads
                self._pace.assume(warm_up(reader) / min(settings.threads, cores()))
                self._reader = reader
            return self._reader


class SharedPassageTokens:
    """The model of token vectors of all shards with a bundle; the background thread opens it."""

    def __init__(
        self,
        bundle: Bundle,
        clock: Clock = time.monotonic,
        *,
        computed: ComputedTokens | None = None,
        background: BackgroundTokens | None = None,
    ) -> None:
        """`computed` and `background` belong to the process; None to create them."""
        self._bundle, self._clock = bundle, clock
        self.computed = computed or ComputedTokens()
        """Token vectors that models computed."""
        self.background = background or BackgroundTokens(partial(lower_priority, _BACKGROUND_NICE))
        """Computes the token vectors of new passages."""
        self._lock = threading.Lock()
        self._model: PassageTokens | None = None
        self._failure: tuple[float, str] | None = None
        """Time and reason of the last failure to open the model."""

    def of_bundle(self, bundle: Bundle) -> "SharedPassageTokens":
        """Returns the model of another bundle. It has the same cache and the same thread."""
        return SharedPassageTokens(
            bundle, self._clock, computed=self.computed, background=self.background
        )

    @property
    def opened(self) -> PassageTokens | None:
        """The model, if it is open."""
        return self._model

    def open(self) -> PassageTokens:
        """Returns the model. Safe to use from several threads.

        Logs a failure, and tries again a minute later: each try verifies the whole bundle.

        Raises:
            ArtefactError: the model cannot be opened, or the bundle was changed since the start.

        """
        with self._lock:
            model = self._model
            if model is not None:
                return model
            if self._failure is not None and self._clock() < self._failure[0] + _RETRY_SECONDS:
                raise ArtefactError(self._failure[1])
            try:
                self._model = model = self._open_verified()
            except ArtefactError as error:
                self._failure = self._clock(), str(error)
                _log.error("token vectors cannot be computed", reason=str(error))
                raise
            return model

    def close(self) -> None:
        """Releases the model once no thread uses it. The next `open` opens it again."""
        self._model = None  # without the lock, which is held for seconds while a model is opened

    def _open_verified(self) -> PassageTokens:
        # the bundle was verified at the start, which may be long ago
        bundle = load_bundle(self._bundle.directory)
        if bundle.manifest.fingerprint != self._bundle.manifest.fingerprint:
            raise ArtefactError(f"{bundle.directory} was replaced: restart the node")
        return open_passage_tokens(bundle, Tokenizer(bundle.tokenizer).special)


@dataclass(frozen=True, slots=True)
class IndexModels:
    """The models of an index, which indexes with the same bundle share."""

    bundle: Bundle
    reader: SharedReader
    passage_tokens: SharedPassageTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """The objects that all shards of a process share."""

    settings: NodeSettings
    bundle: Bundle
    metrics: NodeMetrics
    pool: ReaderPool
    pace: Pace
    reader: SharedReader
    passage_tokens: SharedPassageTokens
    load: NodeLoad
    joint: JointRetrieval
    """Retrieves from several shards for one call."""
    trimmer: HeapTrimmer
    """Returns freed memory to the system after a generation was dropped."""
    merge_lock: asyncio.Lock
    """Held while a shard is merged, so that only one shard is merged at a time."""
    loading: LoadingThreads
    """Runs the loading of shards."""
    runtimes: RuntimeMetrics
    """Metrics of the runtimes of models."""
    peer_nodes: PeerNodes | None = None
    """Calls the nodes that shards move to and from; None if shards do not move."""
    archives: Archives | None = None
    """Where shards that get no calls are archived; None if they are not."""

    def close(self) -> None:
        """Ends the threads."""
        self.passage_tokens.background.close()
        self.pool.close()


def open_node_parts(
    settings: NodeSettings,
    bundle: Bundle,
    registry: CollectorRegistry,
    runtimes: RuntimeMetrics,
    shards: int,
    peer_nodes: PeerNodes | None = None,
) -> NodeParts:
    """Opens the objects that `shards` shards share; the caller closes them.

    Each shard gets an equal part of the limit of unmerged writes. `peer_nodes` calls the nodes that
    shards move to and from; None if shards do not move.
    """
    max_unmerged = max(settings.max_unmerged // shards, 1)
    settings = settings.model_copy(update={"max_unmerged": max_unmerged})
    metrics = NodeMetrics(registry)
    pace = Pace(_HALF_LIFE, time.monotonic)
    options = replace(settings.inference, chooser=runtimes.chooser(bundle.manifest.name))
    per_request, nice = settings.reader_threads, settings.reader_nice
    pool = ReaderPool(settings.threads, per_request, metrics, nice=nice)
    load = NodeLoad(
        settings.max_reads, pace=pace, clock=time.monotonic, metrics=metrics, shards=shards
    )
    return NodeParts(
        settings=settings,
        bundle=bundle,
        metrics=metrics,
        pool=pool,
        pace=pace,
        reader=SharedReader(settings, bundle, options, pace),
        passage_tokens=SharedPassageTokens(bundle),
        load=load,
        joint=JointRetrieval(pool, load, metrics),
        trimmer=HeapTrimmer(trim_function()),
        merge_lock=asyncio.Lock(),
        loading=LoadingThreads(cores()),
        runtimes=runtimes,
        peer_nodes=peer_nodes,
        archives=Archives.of(settings),
    )


def open_models(parts: NodeParts, bundle: Bundle) -> IndexModels:
    """Returns the models of a bundle, which are opened by the first shard that needs them."""
    options = replace(
        parts.settings.inference, chooser=parts.runtimes.chooser(bundle.manifest.name)
    )
    reader = SharedReader(parts.settings, bundle, options, parts.pace)
    return IndexModels(bundle, reader, parts.passage_tokens.of_bundle(bundle))


def parts_of_index(
    parts: NodeParts,
    settings: NodeSettings,
    models: IndexModels,
    metrics: NodeMetrics,
    peer_nodes: PeerNodes,
) -> NodeParts:
    """Returns the objects that the shards of a named index share.

    The indexes of a node share its threads, its queue of reads, and one merge at a time.
    """
    load = parts.load.of_index()
    return replace(
        parts,
        settings=settings,
        bundle=models.bundle,
        metrics=metrics,
        reader=models.reader,
        passage_tokens=models.passage_tokens,
        load=load,
        joint=JointRetrieval(parts.pool, load, metrics),
        peer_nodes=peer_nodes,
    )
