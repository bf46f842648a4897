"""Sends writes of a run of copying to the shards of the copy."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Self, TypeVar

from winnow.content_node.copying.index_nodes import IndexNodes, OwnedShard
from winnow.deadline import Deadline, Sleep
from winnow.domain.partition import Partition
from winnow.domain.write import Put, Write
from winnow.errors import OverloadedError
from winnow.passages.canonical import PassageDigest, digest
from winnow.shard_service.remote import RemoteShardWriter

_CALL_SECONDS = 60.0
_PATIENT_SECONDS = 10.0
"""Seconds for which writes wait before the reason is printed. Merges take a while."""
Result = TypeVar("Result")


class CopyWriter:
    """Writes to all shards of a copy, for one run. An async context manager."""

    def __init__(
        self,
        nodes: IndexNodes,
        shards: Mapping[int, OwnedShard],
        *,
        run: int,
        fingerprint: str,
        on_log: Callable[[int, str], None] = lambda _shard, _log_id: None,
        say: Callable[[str], None] = lambda _: None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Connects when it is entered.

        Args:
            nodes: the nodes of the copy.
            shards: the shards of the copy.
            run: number of the run.
            fingerprint: identifies the encoder of the vectors.
            on_log: called with each shard that has stored writes, and the id of its log.
            say: prints why writes wait for a long time.
            sleep: waits for a number of seconds.

        """
        self._on_log, self._say = on_log, say
        self._nodes, self._shards, self._run = nodes, shards, run
        self._fingerprint, self._sleep = fingerprint, sleep
        self._partition = Partition(nodes.index.shards, nodes.index.holders.keys())
        self._writers: dict[int, RemoteShardWriter] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for shard, held in self._shards.items():
            peer = await self._stack.enter_async_context(self._nodes.open_shard(held.node, shard))
            self._writers[shard] = RemoteShardWriter(
                channel=peer.channel,
                address=peer.address,
                index_id=self._nodes.index.index_id,
                shard=shard,
                fingerprint=self._fingerprint,
                is_named=True,
                copy_run=self._run,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def changed(self, puts: Sequence[Put]) -> list[Put]:
        """Returns the puts that would change something, in their order.

        Raises as `write`.
        """

        async def find(shard: int, indices: Sequence[int]) -> None:
            digests = [
                PassageDigest(each.passage.id, each.version, digest(each.passage))
                for each in (puts[index] for index in indices)
            ]
            writer = self._writers[shard]
            found = await self._when_admitted(
                lambda: writer.find_unchanged(digests, Deadline.after(_CALL_SECONDS))
            )
            unchanged.update(
                index for index, each in zip(indices, found, strict=True) if each is not None
            )

        unchanged: set[int] = set()
        await self._in_each_shard([each.passage.id for each in puts], find)
        return [put for index, put in enumerate(puts) if index not in unchanged]

    async def write(self, writes: Sequence[Write]) -> None:
        """Stores writes durably, those of each shard in their order.

        Raises IdentityError if another run has begun. Raises UnavailableError or
        DeadlineExceededError if a node fails; then some writes may be stored.
        """

        async def store(shard: int, indices: Sequence[int]) -> None:
            own, writer = [writes[index] for index in indices], self._writers[shard]
            written = await self._when_admitted(
                lambda: writer.write(own, Deadline.after(_CALL_SECONDS))
            )
            self._on_log(shard, written[-1].log_id)

        await self._in_each_shard([each.id for each in writes], store)

    async def _in_each_shard(
        self, identifiers: Sequence[str], work: Callable[[int, Sequence[int]], Awaitable[None]]
    ) -> None:
        """Calls `work` with each shard and the indices of its passages; raises the first error."""
        by_shard = defaultdict[int, list[int]](list)
        for index, each in enumerate(identifiers):
            by_shard[self._partition.shard_of(each)].append(index)
        done = await asyncio.gather(
            *(work(shard, indices) for shard, indices in by_shard.items()), return_exceptions=True
        )
        for result in done:
            if isinstance(result, BaseException):
                raise result

    async def _when_admitted(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Repeats a call while its shard has too many unmerged writes, or its disk is full."""
        waited, is_told = 0.0, False
        while True:
            try:
                return await call()
            except OverloadedError as error:
                if waited >= _PATIENT_SECONDS and not is_told:
                    self._say(f"{error}; trying again")
                    is_told = True
                pause = max(error.retry_after, 0.1)
                await self._sleep(pause)
                waited += pause
