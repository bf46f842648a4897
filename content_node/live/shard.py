"""A shard that takes writes, in this process: base and log, and what is served of both.

Three threads at most know it: the event loop asks and tells, one thread stores, and another one
prepares the next base.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path

import structlog

from winnow.content_node.live.counting import built_counts
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.group_commit import GroupCommit
from winnow.content_node.live.limiting import no_direct_writes
from winnow.content_node.live.limits import WriteLimits, check_count
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.tally import WordTally
from winnow.content_node.live.unchanged import find_unchanged
from winnow.content_node.merging.policy import Pending
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.changes import Change
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.deadline import Clock, Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.errors import ArtefactError, NotLoadedError, NotWritableError, OverloadedError
from winnow.journal.journal import JOURNAL
from winnow.passages.canonical import PassageDigest, same_content
from winnow.quoting import are

_log = structlog.get_logger("content_node")
_CHUNK = 2_000
"""Writes that are replayed at a time."""
_MANY = 10
"""Writes that take longer to check than anything may on the event loop."""
_MERGED_AFTER = 2.0
"""Seconds until a merge that is behind may have caught up."""


class LiveShard:
    """A `ShardWriter` and what it makes of a shard."""

    def __init__(
        self,
        state: LiveState,
        words: WordTally,
        log: WriteLog,
        limits: WriteLimits,
        metrics: WriteMetrics,
        clock: Clock = time.monotonic,
    ) -> None:
        """To be had from `open_live`; `words` are all that writes changed up to `state`."""
        self._state, self._words, self._log = state, words, log
        self._limits, self._metrics, self._clock = limits, metrics, clock
        self._serve: Callable[[ShardView], None] = lambda _: None
        self._shown = self.view = state.view
        self._changes = words.changes(state.sequence)
        self._committing = GroupCommit(self._commit, self._show)
        self._broken = ""
        self._last_write = clock()
        metrics.opened(lambda: self._committing.waiting, 0 if limits.refusal else limits.unmerged)
        self._count()

    def served_by(self, serve: Callable[[ShardView], None]) -> None:
        """From now on `serve` is called on the event loop with every new view."""
        self._serve = serve

    @property
    def base(self) -> StoredSegment:
        """What is served, but for what was written since."""
        return self._state.base

    def change(self) -> Change | None:
        """What became of the files of the base that is served; None where nothing did."""
        while True:
            base = self._state.base
            change = base.change()
            # files of a base that was replaced meanwhile are removed
            if base is self._state.base:
                return change

    @property
    def directory(self) -> Path:
        """Of the base that is served."""
        return self._state.base.files[0].path.parent

    @property
    def merged(self) -> int:
        """The last write that the base holds."""
        return self._state.base.manifest.sequence

    @property
    def sequence(self) -> int:
        """The last write that is durable and served."""
        return self._shown.sequence

    @property
    def place(self) -> str:
        """How far the log that this one follows was read; empty if it follows none."""
        return self._log.place

    @property
    def log_id(self) -> str:
        """Names the log; empty before the first write."""
        return self._log.log_id

    @property
    def follows_journal(self) -> bool:
        """Whether its writes come from a journal, now or when the node was started before."""
        return self.log_id.startswith(JOURNAL)

    def pending(self) -> Pending:
        """What a merge would find."""
        view = self._shown
        return Pending(
            passages=self._state.base.manifest.passages,
            rows=view.rows,
            dead=view.rows - view.passages,
            writes=view.sequence - self.merged,
            idle=self._clock() - self._last_write,
        )

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes in their order; returns when they are durable, and served.

        Raises:
            InvalidRequestError: one of them is not for this shard; nothing was stored.
            NotWritableError: the node was started without feeding, or its disk cannot be written,
                or the shard follows a journal, which alone brings its writes.
            OverloadedError: too much waits, or the disk is full.

        """
        if self.follows_journal:
            raise NotWritableError(no_direct_writes(self.log_id))
        await self.admit(writes)
        return await self._committing.write(writes, deadline)

    async def follow(self, writes: Sequence[Write], place: str, log_id: str = "") -> list[Written]:
        """Stores writes out of a log that this shard follows, and how far that was read, at once.

        They come one call after the other. A log that has to be made for it is called `log_id`.
        Raises as `write`.
        """
        await self.admit(writes)
        commit = partial(self._commit, [writes], place, log_id)
        (written,) = await self._committing.alone(commit)
        return written

    async def admit(self, writes: Sequence[Write]) -> None:
        """Refuses what cannot be stored; raises as `write`."""
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        if len(writes) > _MANY:
            await asyncio.to_thread(self._limits.check, writes)
        else:
            self._limits.check(writes)
        unmerged = self.sequence - self.merged + self._committing.waiting + len(writes)
        if unmerged > self._limits.unmerged:
            raise OverloadedError(
                f"{are(unmerged, 'write')} not merged yet, at most {self._limits.unmerged}: try "
                "again, or raise --max-unmerged",
                _MERGED_AFTER,
            )

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Which puts need not be written, by all that this shard acknowledged before.

        Raises:
            NotWritableError: as `write`: a shard that follows a journal does not know what its
                other replicas acknowledged.

        """
        if self.follows_journal:
            raise NotWritableError(no_direct_writes(self.log_id))
        return await self.compare(puts, deadline)

    async def compare(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Compares puts with what is stored here, as `find_unchanged` returns it: between two
        transactions, so by nothing that is not durable.
        """
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        check_count("passages", len(puts))
        return await self._committing.alone(partial(self._unchanged, puts, deadline))

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """How many passages of the whole index had each word when it was built."""
        deadline.check("counts were told")
        return await asyncio.to_thread(built_counts, self._state.base)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """What writes to this shard changed of that, up to the last one that is served."""
        deadline.check("changes were told")
        return self._changes

    async def swap(self, base: StoredSegment) -> None:
        """From now on serves `base` and what was written since.

        Raises:
            ArtefactError: they do not belong together; what was served still is.

        """
        state = await asyncio.to_thread(self._prepared, base)
        await self._committing.alone(partial(self._turn_to, state))

    async def trim(self, upto: int) -> None:
        """Forgets writes up to this one, which the base holds; raises as `WriteLog.trim`."""
        if not self._limits.refusal:
            await asyncio.to_thread(self._log.trim, min(upto, self.merged))

    def abandon(self) -> None:
        """Lets go of a shard that was never served."""
        self._log.close()

    async def close(self) -> None:
        """Stores what waits, and lets go of the directory."""
        await self._committing.close(self._log.close)

    def _commit(
        self, calls: Sequence[Sequence[Write]], place: str | None = None, log_id: str = ""
    ) -> list[list[Written]]:
        """In the thread that stores: all of the calls, in one transaction."""
        if self._broken:
            raise NotWritableError(self._broken)
        started = time.perf_counter()
        try:
            # replicas of all versions must decide alike of an entry of their journal, so there
            # only what is equal to the letter is the same; fronts leave out what is unchanged
            same = same_content if place is None else eq
            ids = {write.id for writes in calls for write in writes}
            deciding = self._state.deciding(ids, same)
            written = [[deciding.decide(write) for write in writes] for writes in calls]
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error
        if deciding.logged or place is not None:
            self._log.append(deciding.logged, place, log_id)
            self._apply(deciding.logged)
            self._log.acknowledge()
            self._metrics.batch.observe(len(deciding.logged))
            self._metrics.commit.observe(time.perf_counter() - started)
        for each in written:
            self._metrics.written(each)
        return [[replace(one, log_id=self._log.log_id) for one in each] for each in written]

    def _unchanged(self, puts: Sequence[PassageDigest], deadline: Deadline) -> list[Written | None]:
        """In the thread that stores."""
        deadline.check("passages were compared")  # here: writes wait for this thread
        if self._broken:
            raise NotWritableError(self._broken)
        try:
            return find_unchanged(self._state, puts)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error

    def _apply(self, writes: Sequence[Logged]) -> None:
        """What is durable becomes what is served. Cannot fail; if it does, nothing more is
        written before all is read anew.
        """
        try:
            self._state.follow(self._log.log_id)
            self._state.apply(writes)
            self._words.count_all(writes)
        except BaseException as error:
            self._broken = f"a durable write could not be served ({error!r}): start the node again"
            _log.exception("a durable write could not be served")
            raise NotWritableError(self._broken) from error
        self._changes = self._words.changes(self._state.sequence)
        self._last_write = self._clock() if writes else self._last_write
        self.view = self._state.view

    def _prepared(self, base: StoredSegment) -> LiveState:
        """The next state, as far as the log has come."""
        old, new = self._state.base.manifest, base.manifest
        if new.log_id != self._log.log_id or new.sequence < old.sequence:
            raise ArtefactError(
                f"a base of log {new.log_id or '(none)'} up to write {new.sequence} does not "
                f"follow one of log {self._log.log_id} up to write {old.sequence}"
            )
        state = LiveState(base, self._log.log_id)
        catch_up(state, self._log)
        return state

    def _turn_to(self, state: LiveState) -> None:
        """In the thread that stores: what was written meanwhile is applied, too."""
        catch_up(state, self._log)
        self._state, self.view = state, state.view

    def _show(self) -> None:
        """On the event loop, after each piece of work."""
        if self.view is not self._shown:
            self._shown = self.view
            self._serve(self._shown)
            self._count()

    def _count(self) -> None:
        self._metrics.served(self.sequence, self.sequence - self.merged)


def catch_up(state: LiveState, log: WriteLog) -> None:
    """Applies all writes of a log that are not in a state yet."""
    some: list[Logged] = []
    for write in log.after(state.sequence, log.last):
        some.append(write)
        if len(some) == _CHUNK:
            state.apply(some)
            some = []
    state.apply(some)
