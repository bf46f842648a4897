"""Asks and feeds one node, until it is cancelled."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import numpy as np

from bench.soak.made_up import INDEX
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.write import Write
from winnow.errors import WinnowError
from winnow.stateless.feed.remote import RemoteShardWriter
from winnow.stateless.replicas.remote import RemoteSearcher

_DEADLINE = 2.0
_LOOK_EVERY = 0.5
_BATCH = 50
_DEPTHS = (
    RetrievalDepth(3, 50),
    RetrievalDepth(3, 50, 50),
    RetrievalDepth(3, by_words=20),
    RetrievalDepth(3, 50, where="n >= 10"),
)
_READS = 1
"""Passages that a question has read."""


@dataclass(slots=True)
class Counts:
    """What became of the load."""

    asked: int = 0
    written: int = 0
    failed: int = 0


class Load:
    """Questions and writes for one node."""

    def __init__(self, channel: grpc.aio.Channel, address: str, fingerprint: str) -> None:
        self._searcher = RemoteSearcher(channel, address)
        self._writer = RemoteShardWriter(channel, address, INDEX, 0, fingerprint)
        self.counts = Counts()

    async def look(self) -> None:
        """Looks at the node as fronts do."""
        while True:
            with contextlib.suppress(WinnowError):
                await self._searcher.info(Deadline.after(_DEADLINE))
            await asyncio.sleep(_LOOK_EVERY)

    async def ask(self, seed: int, pause: float) -> None:
        """Asks one question after the other, with `pause` seconds in between."""
        chance = np.random.default_rng(seed)
        info = await self._searcher.info(Deadline.after(_DEADLINE))
        for depth in itertools.cycle(_DEPTHS):
            vector = chance.standard_normal(info.dimension).astype(np.float32)
            vector /= np.linalg.norm(vector)
            tokens = tuple(np.minimum(1_000 + chance.zipf(1.2, 8), 30_000).tolist())
            question = EncodedQuestion("?", tokens, vector, info.bundle_fingerprint)
            try:
                found = await self._searcher.retrieve(question, depth, Deadline.after(_DEADLINE))
                hits = found.hits[:_READS]
                await self._searcher.read(question, hits, 10, Deadline.after(_DEADLINE))
                self.counts.asked += 1
            except WinnowError:
                self.counts.failed += 1
            await asyncio.sleep(pause)

    async def feed(self, writes: Iterator[Write], per_second: float) -> None:
        """Sends writes at a steady rate."""
        while True:
            batch = list(itertools.islice(writes, _BATCH))
            try:
                await self._writer.write(batch, Deadline.after(_DEADLINE))
                self.counts.written += len(batch)
            except WinnowError:
                self.counts.failed += 1
            await asyncio.sleep(_BATCH / per_second)
