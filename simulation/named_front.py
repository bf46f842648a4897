"""A front node of the simulation that follows a catalog of named indexes."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulation.front import RunningFront, shared_parts
from simulation.models import SimulatedTextEncoder, tokenizer_of
from simulation.plan import ALIAS
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.write import Deletion, FedPassage, WriteResult
from winnow.stateless.composing.answers import ConversionThreads
from winnow.stateless.composing.encoders import OpenEncoder
from winnow.stateless.composing.feed import FeedParts
from winnow.stateless.composing.named_indexes import NamedIndexes, SharedEncoders
from winnow.stateless.feed.fed_index import ChooseFed, TenantFeed, write_to_current
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.indexes.by_name import IndexedAnswers
from winnow.text.cached import CachedTextEncoder

_CACHE_BYTES = 1 << 20


class SimulatedEncoders:
    """Takes the place of `Encoders`: opens an encoder that needs no model."""

    def open(
        self, bundle: Bundle, address: str = "", stack: contextlib.AsyncExitStack | None = None
    ) -> OpenEncoder:
        encoder = CachedTextEncoder(SimulatedTextEncoder(bundle), _CACHE_BYTES)
        return OpenEncoder(bundle, tokenizer_of(bundle.tokenizer), encoder, None)


@dataclass(slots=True)
class _Request:
    """What `FeedServicer` takes from a message to choose the index."""

    index: str = ALIAS
    tenant: str = ""


class NamedFeed:
    """Writes to the index of the alias, as `FeedServicer` does."""

    def __init__(self, choose: ChooseFed) -> None:
        self._choose = choose

    async def put(self, passages: Sequence[FedPassage], deadline: Deadline) -> list[WriteResult]:
        """Stores passages."""
        return await self._write(deadline, lambda to: to.put(passages, deadline, ""))

    async def delete(self, deletions: Sequence[Deletion], deadline: Deadline) -> list[WriteResult]:
        """Deletes passages."""
        return await self._write(deadline, lambda to: to.delete(deletions, deadline, ""))

    async def _write(
        self, deadline: Deadline, write: Callable[[TenantFeed], Awaitable[list[WriteResult]]]
    ) -> list[WriteResult]:
        fed, results = await write_to_current(self._choose, _Request(), deadline, write)
        return [replace(each, position=replace(each.position, index=fed.name)) for each in results]


async def open_named_front(bundle: Bundle, addresses: Sequence[str], catalog: Path) -> RunningFront:
    """Composes a front over the nodes at some addresses, and the indexes of a catalog."""
    front = shared_parts(bundle, addresses, indexes=str(catalog))
    encoders: Any = SimulatedEncoders()
    shared = SharedEncoders(front, encoders, encoders.open(bundle))
    named = NamedIndexes(
        front,
        shared,
        lambda _: None,
        threads=ConversionThreads.open(front),
        feed=FeedParts(front, FeedMetrics(front.registry)),
    )
    answers, feed = IndexedAnswers(named.choice.choose), NamedFeed(named.choice.choose_fed)
    return RunningFront(answers, feed, front.registry, named.part)
