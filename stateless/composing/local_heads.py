"""Opens heads that are applied in the front's own process."""

from functools import partial

from winnow.domain.prediction import HeadInMemory
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.store import open_store
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.composing.encoders import OpenEncoder
from winnow.stateless.composing.front import Front
from winnow.stateless.composing.open_heads import OpenHeads
from winnow.stateless.heads.encoder_groups import Memory


class LocalHeadsOpener:
    """Opens the heads of encoder groups, which share its threads. The front closes them."""

    def __init__(self, front: Front) -> None:
        self._stack, self._metrics = front.stack, HeadCacheMetrics(front.registry)
        self._budget = front.settings.heads_budget_mb * 1_000_000
        self._threads = FairThreads(front.settings.head_threads, "heads")
        self._stack.callback(self._threads.close)

    def open(self, name: str, encoder: OpenEncoder, store: str) -> OpenHeads:
        """The heads of the encoder group of that name, from its store."""
        heads = LocalHeads(
            open_store(store),
            fingerprint=encoder.bundle.manifest.states_fingerprint,
            width=encoder.width,
            budget_bytes=self._budget,
            threads=self._threads,
            metrics=self._metrics.group(name),
        )
        self._stack.callback(heads.close)
        return OpenHeads(heads, partial(_memory, heads), heads.begin_encoder_thread_run)


def _memory(heads: LocalHeads) -> Memory:
    cached = heads.cached()
    warm = (HeadInMemory(each.id, each.version, each.bytes, each.pinned) for each in cached)
    return Memory(heads.budget_bytes, tuple(warm))
