"""Puts that change nothing, found before they are encoded: shards compare digests.

A shard judges a put by every write that was acknowledged before, as if the put had been stored at
that moment. The call that brought it had begun by then and ends later, so what others write
meanwhile may as well come after it. An id that the same call or stream writes once more is not
asked for: its earlier write may not be stored yet, and the later one has to count.

The vector of a put that is unchanged would be the stored one: it depends on title, text and encoder
alone, and a shard refuses digests that are meant for another encoder.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from winnow.deadline import Deadline
from winnow.domain.shard import shard_of
from winnow.domain.write import Position, Put
from winnow.errors import WinnowError
from winnow.passages.canonical import PassageDigest, digest
from winnow.stateless.feed.storing import Notice, Placed
from winnow.stateless.feed.writers import Writers

_SHARE = 4
"""The part of the time left that shards have: what they do not tell in time is encoded."""


class UnchangedPuts:
    """Asks shards which passages they have already."""

    def __init__(
        self, writers: Writers, notice: Notice = lambda _shard, _sequence, _log_id: None
    ) -> None:
        """`notice` gets a shard and the write by which it judged, as of `Storing`."""
        self._writers, self._notice = writers, notice

    async def find(
        self, puts: Sequence[Put], deadline: Deadline, written: Collection[str] = ()
    ) -> list[Placed | None]:
        """What becomes of each put if it changes nothing; None if it has to be stored.

        `written`: ids that are being written by the same stream. No failure is raised: storing
        tells what is wrong with a shard.
        """
        found: list[Placed | None] = [None] * len(puts)
        parts = self._parts(puts, written)
        digests = await asyncio.to_thread(_digests, puts, parts)
        soon = deadline.earlier(deadline.left() * (1 - 1 / _SHARE))
        async with asyncio.TaskGroup() as group:
            for shard, places in parts.items():
                group.create_task(self._ask(shard, places, digests[shard], soon, found))
        return found

    def _parts(self, puts: Sequence[Put], written: Collection[str]) -> dict[int, list[int]]:
        """The places of the puts that may be asked for, by shard; none while there is no index."""
        try:
            shards = self._writers.shards
        except WinnowError:
            return {}
        times = Counter(put.passage.id for put in puts)
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for place, put in enumerate(puts):
            name = put.passage.id
            if times[name] == 1 and name not in written:
                parts[shard_of(name, shards)].append(place)
        return parts

    async def _ask(
        self,
        shard: int,
        places: Sequence[int],
        digests: Sequence[PassageDigest],
        deadline: Deadline,
        found: list[Placed | None],
    ) -> None:
        try:
            writer = self._writers.writer(self._writers.address(shard), shard)
            results = await writer.find_unchanged(digests, deadline)
        except WinnowError:
            return
        for place, each in zip(places, results, strict=True):
            if each is not None:
                found[place] = each.outcome, Position(shard, each.sequence)
        if needless := [each for each in results if each is not None]:
            last = max(needless, key=lambda each: each.sequence)
            self._notice(shard, last.sequence, last.log_id)


class IdsInHand:
    """Ids that the messages of one stream write which are not stored yet."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def holding(self, ids: Collection[str]) -> Iterator[frozenset[str]]:
        """Holds the ids of the next message; gives those that messages before it hold."""
        own = set(ids)
        before = frozenset(name for name in own if self._held[name])
        self._held.update(own)
        try:
            yield before
        finally:
            self._held.subtract(own)
            self._held = +self._held


def _digests(puts: Sequence[Put], parts: dict[int, list[int]]) -> dict[int, list[PassageDigest]]:
    return {shard: [_digest(puts[place]) for place in places] for shard, places in parts.items()}


def _digest(put: Put) -> PassageDigest:
    return PassageDigest(put.passage.id, put.version, digest(put.passage))
