"""Serves an encoder and heads, in this process or in the process of a front node."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client.channels import open_aio_channel
from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.store import open_store
from winnow.inference.encoder import Encoder, open_question_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import LocalTextEncoder
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import head_pb2, head_pb2_grpc

DEADLINE = 30.0
_AMPLE_BYTES = 1 << 30
"""Memory budget in bytes, large enough for all heads."""
_READY_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class LocalPredictor:
    """Applies heads to texts in this process. The encoder has no cache."""

    encoder: Encoder
    texts: LocalTextEncoder
    heads: LocalHeads
    registry: CollectorRegistry

    async def predict(self, ids: Sequence[int], heads: Sequence[str]) -> None:
        """Encodes a text and applies heads, as a front node does. Raises the failure of a head."""
        deadline = Deadline.after(DEADLINE)
        with self.heads.begin_encoder_thread_run(heads, deadline) as run:
            encoding = await self.texts.encode(ids, on_encoded=run.run)
            results = run.applied()
        assert encoding.states is not None
        if remaining := heads[len(results) :]:
            results += await self.heads.apply(encoding.states, remaining, deadline)
        for applied in results:
            if applied.failure is not None:
                raise applied.failure

    def count(self, name: str, **labels: str) -> float:
        """Returns the value of a metric of the heads, or 0 if it was never set."""
        return self.registry.get_sample_value(name, {"ring": "bench", **labels}) or 0.0


@contextlib.contextmanager
def local_predictor(
    bundle: Bundle, store: Path, budget: int = _AMPLE_BYTES
) -> Iterator[LocalPredictor]:
    """Opens the encoder and the heads of a store. Loaded heads take at most `budget` bytes."""
    tokenizer, registry = Tokenizer(bundle.tokenizer), CollectorRegistry()
    encoder = open_question_encoder(bundle, tokenizer.special, states=True)
    texts, threads = LocalTextEncoder(encoder, cores()), FairThreads(cores(), "heads")
    heads = LocalHeads(
        open_store(store),
        fingerprint=bundle.manifest.states_fingerprint,
        width=bundle.manifest.encoder.dimension,
        budget_bytes=budget,
        threads=threads,
        metrics=HeadCacheMetrics(registry).group("bench"),
    )
    try:
        yield LocalPredictor(encoder, texts, heads, registry)
    finally:
        heads.close()
        threads.close()
        texts.close()


@contextlib.asynccontextmanager
async def front_serving_heads(
    bundle: Bundle, store: Path
) -> AsyncIterator["head_pb2_grpc.HeadServiceAsyncStub"]:
    """Starts a front node that serves the heads of a store without an index; yields a stub."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    command = ["front", "--bundle", str(bundle.directory), "--heads", str(store)]
    with tempfile.TemporaryFile() as log, Processes() as processes:
        processes.start("front", [*command, "--listen", address, "--drain-linger", "0"], log=log)
        async with open_aio_channel(address) as channel:
            stub = head_pb2_grpc.HeadServiceStub(channel)
            try:
                await stub.ListHeads(
                    head_pb2.ListHeadsRequest(), timeout=_READY_TIMEOUT, wait_for_ready=True
                )
            except grpc.aio.AioRpcError as error:
                log.seek(0)
                lines = log.read().decode(errors="replace")[-2_000:]
                raise UnavailableError(f"the front does not serve: {error}\n{lines}") from error
            yield stub
