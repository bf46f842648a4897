"""Opens heads that run in the process of the front."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from winnow.heads.heads import Heads
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.run import BeginEncoderThreadRun, run_no_heads
from winnow.heads.store import open_store
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.composing.encoders import OpenEncoder
from winnow.stateless.composing.front import Front
from winnow.stateless.heads.encoder_groups import HeadMemory


@dataclass(frozen=True, slots=True)
class OpenHeads:
    """The heads of an encoder group."""

    heads: Heads
    memory: Callable[[], HeadMemory] = HeadMemory
    """Returns the memory that the heads take in this process."""
    begin_run: BeginEncoderThreadRun = run_no_heads
    """Starts a run of heads in the thread that encodes."""


class LocalHeadsOpener:
    """Opens the heads of encoder groups in this process. All groups share the same threads. The
    front closes the heads.
    """

    def __init__(self, front: Front) -> None:
        self._stack, self._metrics = front.stack, HeadCacheMetrics(front.registry)
        self._budget = front.settings.heads_budget_mb * 1_000_000
        self._threads = FairThreads(front.settings.head_threads, "heads")
        self._stack.callback(self._threads.close)

    def open(self, name: str, encoder: OpenEncoder, store: str) -> OpenHeads:
        """Opens the heads in `store` for the encoder group `name`."""
        heads = LocalHeads(
            open_store(store),
            fingerprint=encoder.bundle.manifest.states_fingerprint,
            width=encoder.width,
            budget_bytes=self._budget,
            threads=self._threads,
            metrics=self._metrics.group(name),
        )
        self._stack.callback(heads.close)
        return OpenHeads(heads, partial(_head_memory, heads), heads.begin_encoder_thread_run)


def _head_memory(heads: LocalHeads) -> HeadMemory:
    return HeadMemory(heads.budget_bytes, tuple(heads.cached()))
