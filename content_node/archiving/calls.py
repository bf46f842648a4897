"""The calls of a shard that may be archived. Each call enters its gate.

What the stub knows is told without restoring the shard: its description, the list of its tenants,
and what a tenant has stored.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from winnow.bundle import Bundle
from winnow.content_node.admission import NodeLoad
from winnow.content_node.archiving.gate import RESTORING, ShardGate
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.archiving.stub import ArchiveStub
from winnow.content_node.identity import shard_info
from winnow.content_node.local_shard import Retrieval
from winnow.content_node.tenants import check_tenant
from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    PassageCount,
    Seen,
    ShardRequest,
    StoredTenant,
    TenantListing,
    TenantPage,
)
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import RestoringError
from winnow.passages.canonical import PassageDigest
from winnow.searcher import Read, Retrieved

Gate = ShardGate[OpenedShard]


class ArchivableSearcher:
    """A `LocalShard` that is restored by its first call."""

    def __init__(
        self, shard: ArchivableShard, bundle: Bundle, load: NodeLoad, *, journaled: bool = False
    ) -> None:
        """`bundle` and `load` are those of the node, for the description of an archived shard.

        `journaled` means that the shard follows a journal.
        """
        self._journaled = journaled
        self._shard, self._gate, self._bundle, self._load = shard, shard.gate, bundle, load
        self.passages = ArchivablePassages(shard)

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard; never restores it."""
        if (opened := self._gate.opened) is not None:
            return await opened.searcher.info(deadline)
        load, stub = self._load, self._shard.stub
        assert stub is not None  # set before the gate closes
        return replace(
            shard_info(stub, self._bundle),
            journaled=self._journaled,
            moves=self._shard.moves,
            seconds_per_read=load.seconds_per_read,
            reads_in_hand=load.reads_in_flight,
        )

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Retrieves from the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.searcher.retrieve(question, depth, deadline)

    async def prepare(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieval:
        """Prepares a retrieval from the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.searcher.prepare(question, depth, deadline)

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads hits of the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.searcher.read(question, hits, deadline)

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads from the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.searcher.search(question, depth, deadline)


class ArchivablePassages:
    """A `PassageSource` that is restored by its first request, unless the stub has the reply."""

    def __init__(self, shard: ArchivableShard) -> None:
        self._shard, self._gate = shard, shard.gate

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        """Returns the result of a request."""
        stub = self._shard.stub
        if stub is not None and request.after <= stub.sequence:
            known: Seen | None = _known_reply(request, stub)
            if known is not None and await self._shard.knows_all_writes(deadline):
                return known
        async with self._gate.enter(deadline) as opened:
            return await opened.searcher.passages.fetch(request, deadline)


class ArchivableCopies:
    """A `TakesCopies` that is restored by its first write."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def store_copied(
        self, writes: Sequence[Write], run: int, deadline: Deadline
    ) -> list[Written]:
        """Stores copied writes in the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.copied.store_copied(writes, run, deadline)

    async def find_unchanged_copied(
        self, puts: Sequence[PassageDigest], run: int, deadline: Deadline
    ) -> list[Written | None]:
        """Compares copied puts with the passages of the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.copied.find_unchanged_copied(puts, run, deadline)


class ArchivableWriter:
    """A `CountingShardWriter` that is restored by its first write."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes in the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.writer.write(writes, deadline, attempt)

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Compares puts with the passages of the restored shard."""
        async with self._gate.enter(deadline) as opened:
            return await opened.writer.find_unchanged(puts, deadline)

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Reads the counts; raises RestoringError if the shard is archived."""
        return await self._open_now.writer.word_counts_at_build(deadline)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Reads the changes; raises RestoringError if the shard is archived."""
        return await self._open_now.writer.changes(deadline)

    @property
    def _open_now(self) -> OpenedShard:
        """The shard, if it is open. Fronts fetch counts by themselves, which is no use of it."""
        if (opened := self._gate.opened) is None:
            raise RestoringError(RESTORING).with_public(RESTORING)
        return opened


def _known_reply(request: ShardRequest[Any], stub: ArchiveStub) -> Any:
    """Returns the reply that the stub has; None if the shard must be restored for it."""
    if isinstance(request, TenantListing):
        names = [each for each in stub.tenants if each[0] > request.after_tenant]
        page = tuple(StoredTenant(name, count) for name, count, _ in names[: request.limit])
        return TenantPage(
            tenants=page,
            complete=len(page) == len(names),
            sequence=stub.sequence,
            log_id=stub.log_id,
        )
    if isinstance(request, CountRequest) and not request.where:
        check_tenant(request.tenant, has_tenants=stub.manifest.has_tenants)
        used = stub.usage_of(request.tenant)
        return PassageCount(
            passages=used.passages,
            content_bytes=used.bytes if request.with_bytes else None,
            sequence=stub.sequence,
            log_id=stub.log_id,
        )
    return None
