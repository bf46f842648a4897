"""Puts that change nothing, found before they are encoded: shards compare digests.

A shard judges a put by every write that was acknowledged before, as if the put had been stored at
that moment. The call with the put had begun by then and ends later, so writes of other callers in
between count as later ones. An id that the same call or stream writes twice is not compared: its
earlier write may not be stored yet, and the later one has to count.

The vector of an unchanged put would be the stored one. It depends on title, text and encoder alone,
and a shard refuses digests that are meant for another encoder.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from winnow.deadline import Deadline
from winnow.domain.shard import shard_of
from winnow.domain.write import Position
from winnow.errors import WinnowError
from winnow.passages.canonical import PassageDigest
from winnow.stateless.feed.storing import Placed, RecordWrite
from winnow.stateless.feed.writers import Writers

_SHARE = 4
"""Shards have this part of the time left. Puts that are not judged in time are encoded."""


class UnchangedPuts:
    """Asks shards which passages they have already."""

    def __init__(
        self, writers: Writers, record_write: RecordWrite = lambda _shard, _sequence, _log_id: None
    ) -> None:
        """`record_write` gets a shard and the write by which it judged, as of `Storing`."""
        self._writers, self._record_write = writers, record_write

    async def find(
        self, puts: Sequence[PassageDigest], deadline: Deadline, written: Collection[str] = ()
    ) -> list[Placed | None]:
        """For each put the outcome if it changes nothing, and None if it has to be stored.

        `written`: ids that earlier messages of the same stream write. No failure is raised: storing
        raises those of a shard.
        """
        found: list[Placed | None] = [None] * len(puts)
        soon = deadline.earlier(deadline.left() * (1 - 1 / _SHARE))
        async with asyncio.TaskGroup() as group:
            for shard, places in self._parts(puts, written).items():
                group.create_task(self._ask(shard, puts, places, soon, found))
        return found

    def _parts(
        self, puts: Sequence[PassageDigest], written: Collection[str]
    ) -> dict[int, list[int]]:
        """The places of the puts that are compared, by shard; none while there is no index."""
        try:
            shards = self._writers.shards
        except WinnowError:
            return {}
        times = Counter(put.id for put in puts)
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for place, put in enumerate(puts):
            if times[put.id] == 1 and put.id not in written:
                parts[shard_of(put.id, shards)].append(place)
        return parts

    async def _ask(
        self,
        shard: int,
        puts: Sequence[PassageDigest],
        places: Sequence[int],
        deadline: Deadline,
        found: list[Placed | None],
    ) -> None:
        try:
            writer = self._writers.writer(self._writers.address(shard), shard)
            results = await writer.find_unchanged([puts[place] for place in places], deadline)
        except WinnowError:
            return
        for place, each in zip(places, results, strict=True):
            if each is not None:
                found[place] = each.outcome, Position(shard, each.sequence)
        if needless := [each for each in results if each is not None]:
            last = max(needless, key=lambda each: each.sequence)
            self._record_write(shard, last.sequence, last.log_id)
