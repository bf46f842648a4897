"""A shard that takes writes, in this process: base and log, and the view that is served of both.

At most three threads use it: the event loop calls it, one thread stores, and another one prepares
the next base.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path

import structlog

from winnow.content_node.live.entry import Logged
from winnow.content_node.live.group_commit import GroupCommit
from winnow.content_node.live.limits import WriteLimits, check_count, no_direct_writes
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.word_counts import WordTally, built_counts
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
_MERGED_AFTER = 2.0
"""Seconds until a merge that is behind may have caught up."""


class LiveShard:
    """A `ShardWriter`, and the view of its shard."""

    def __init__(
        self,
        *,
        state: LiveState,
        words: WordTally,
        log: WriteLog,
        limits: WriteLimits,
        metrics: WriteMetrics,
        clock: Clock = time.monotonic,
    ) -> None:
        """`open_live` makes it; `words` counts what all writes up to `state` changed."""
        self._state, self._words, self._log = state, words, log
        self._limits, self._metrics, self._clock = limits, metrics, clock
        self._serve: Callable[[ShardView], None] = lambda _: None
        self._shown = self.view = state.view
        self._changes = words.changes(state.sequence)
        self._group = GroupCommit(self._commit, self._show)
        self._broken = ""
        self._last_write = clock()
        metrics.observe_waiting(
            lambda: self._group.waiting, 0 if limits.refusal else limits.unmerged
        )
        self._count()

    def on_new_view(self, serve: Callable[[ShardView], None]) -> None:
        """Registers `serve`, which the event loop calls with every new view."""
        self._serve = serve

    @property
    def base(self) -> StoredSegment:
        """The base that is served, without later writes."""
        return self._state.base

    def change(self) -> Change | None:
        """How the files of the served base changed; None if they did not."""
        while True:
            base = self._state.base
            change = base.file_change()
            # a merge removes the files of a base that it has replaced
            if base is self._state.base:
                return change

    @property
    def directory(self) -> Path:
        """The directory of the base that is served."""
        return self._state.base.files[0].path.parent

    @property
    def merged(self) -> int:
        """The number of the last write that the base holds."""
        return self._state.base.manifest.sequence

    @property
    def sequence(self) -> int:
        """The number of the last write that is durable and served."""
        return self._shown.sequence

    @property
    def place(self) -> str:
        """The place in the journal up to which it was read; empty if the log follows none."""
        return self._log.place

    @property
    def log_id(self) -> str:
        """The name of the log; empty before the first write."""
        return self._log.log_id

    @property
    def follows_journal(self) -> bool:
        """Whether its writes come from a journal, now or in an earlier run of the node."""
        return self.log_id.startswith(JOURNAL)

    def pending(self) -> Pending:
        """The state that a merge would find."""
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

        They are read and checked in the thread that stores them, and may be converted there.

        Raises:
            InvalidRequestError: one of them is not for this shard; none of the call was stored.
            NotWritableError: the node was started without feeding, its disk cannot be written, or
                the shard follows a journal, which alone brings its writes.
            OverloadedError: too many writes wait, or the disk is full.

        """
        if self.follows_journal:
            raise NotWritableError(no_direct_writes(self.log_id))
        self._expect_room(len(writes))
        return await self._group.write(writes, deadline)

    async def follow(self, writes: Sequence[Write], place: str, log_id: str = "") -> list[Written]:
        """Stores writes out of a journal together with the place up to which it was read.

        The calls come one after the other. A log that has to be made for it is called `log_id`.
        Raises as `write`.
        """
        self._expect_room(len(writes))
        return await self._group.alone(partial(self._follow, writes, place, log_id))

    async def admit(self, writes: Sequence[Write]) -> None:
        """Refuses writes that cannot be stored; raises as `write`."""
        self._expect_room(len(writes))
        await asyncio.to_thread(self._limits.check, writes)

    def _expect_room(self, writes: int) -> None:
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        check_count("writes", writes)
        unmerged = self.sequence - self.merged + self._group.waiting + writes
        if unmerged > self._limits.unmerged:
            raise OverloadedError(
                f"{are(unmerged, 'write')} not merged yet, at most {self._limits.unmerged}: try "
                "again, or raise --max-unmerged",
                _MERGED_AFTER,
            )

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that change nothing, by all writes that this shard acknowledged before.

        Raises:
            NotWritableError: as `write`. A shard that follows a journal does not know what its
                other replicas acknowledged.

        """
        if self.follows_journal:
            raise NotWritableError(no_direct_writes(self.log_id))
        return await self.compare(puts, deadline)

    async def compare(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Compares puts with the passages of this replica; returns the same as `find_unchanged`.

        It runs between two transactions, so that only durable writes count.
        """
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        check_count("passages", len(puts))
        return await self._group.alone(partial(self._unchanged, puts, deadline))

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """The passages of the whole index that had each word when it was built."""
        deadline.check("counts were told")
        return await asyncio.to_thread(built_counts, self._state.base)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """The changes of these counts by the writes to this shard that are served."""
        deadline.check("changes were told")
        return self._changes

    async def swap(self, base: StoredSegment) -> None:
        """Serves `base` and the later writes from now on.

        Raises:
            ArtefactError: they do not belong together; the old base is still served.

        """
        state = await asyncio.to_thread(self._prepared, base)
        await self._group.alone(partial(self._turn_to, state))

    async def trim(self, upto: int) -> None:
        """Removes writes up to `upto` from the log, but none that the base lacks.

        Raises as `WriteLog.trim`.
        """
        if not self._limits.refusal:
            await asyncio.to_thread(self._log.trim, min(upto, self.merged))

    def abandon(self) -> None:
        """Closes a shard that was never served."""
        self._log.close()

    async def close(self) -> None:
        """Stores the writes that wait, and releases the directory."""
        await self._group.close(self._log.close)

    def _commit(self, calls: Sequence[Sequence[Write]]) -> list[list[Written] | Exception]:
        """In the thread that stores: the valid calls, in one transaction."""
        faults = [self._fault(writes) for writes in calls]
        valid = [writes for writes, fault in zip(calls, faults, strict=True) if fault is None]
        stored = iter(self._store(valid))
        return [fault or next(stored) for fault in faults]

    def _fault(self, writes: Sequence[Write]) -> Exception | None:
        try:
            self._limits.check(writes)
        except Exception as error:  # noqa: BLE001 (one caller's fault is not that of the others)
            return error
        return None

    def _follow(self, writes: Sequence[Write], place: str, log_id: str) -> list[Written]:
        """In the thread that stores: writes out of a journal."""
        self._limits.check(writes)
        (written,) = self._store([writes], place, log_id)
        return written

    def _store(
        self, calls: Sequence[Sequence[Write]], place: str | None = None, log_id: str = ""
    ) -> list[list[Written]]:
        """Decides writes, makes them durable, and applies them to the view."""
        if self._broken:
            raise NotWritableError(self._broken)
        started = time.perf_counter()
        try:
            # Replicas of every software version must decide a journal entry alike. So a journal
            # entry counts as unchanged only if it is identical. Fronts have already dropped
            # unchanged passages.
            same = same_content if place is None else eq
            conflict = self._state.conflict((each.id for call in calls for each in call), same)
            written = [[conflict.decide(write) for write in writes] for writes in calls]
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error
        if conflict.logged or place is not None:
            self._log.append(conflict.logged, place, log_id)
            self._apply(conflict.logged)
            self._log.acknowledge()
            self._metrics.batch.observe(len(conflict.logged))
            self._metrics.commit.observe(time.perf_counter() - started)
        for each in written:
            self._metrics.count_durable(each)
        return [[replace(one, log_id=self._log.log_id) for one in each] for each in written]

    def _unchanged(self, puts: Sequence[PassageDigest], deadline: Deadline) -> list[Written | None]:
        """In the thread that stores."""
        deadline.check("passages were compared")  # here: writes wait for this thread
        if self._broken:
            raise NotWritableError(self._broken)
        try:
            return self._state.find_unchanged(puts)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error

    def _apply(self, writes: Sequence[Logged]) -> None:
        """Applies durable writes to the view. It cannot fail. If it does, no more writes are taken
        before the node starts again.
        """
        try:
            self._state.follow(self._log.log_id)
            self._state.apply(writes)
            self._words.count(writes)
        except BaseException as error:
            self._broken = f"loading a durable write failed ({error!r}): start the node again"
            _log.exception("durable write not visible: loading it failed")
            raise NotWritableError(self._broken) from error
        self._changes = self._words.changes(self._state.sequence)
        self._last_write = self._clock() if writes else self._last_write
        self.view = self._state.view

    def _prepared(self, base: StoredSegment) -> LiveState:
        """The state of the next base with the writes of the log up to now."""
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
        """In the thread that stores: applies the writes that came meanwhile, too."""
        catch_up(state, self._log)
        self._state, self.view = state, state.view

    def _show(self) -> None:
        """On the event loop, after each piece of work."""
        if self.view is not self._shown:
            self._shown = self.view
            self._serve(self._shown)
            self._count()

    def _count(self) -> None:
        self._metrics.set_served(self.sequence, self.sequence - self.merged)


def catch_up(state: LiveState, log: WriteLog) -> None:
    """Applies all writes of a log that a state lacks."""
    some: list[Logged] = []
    for write in log.after(state.sequence, log.last):
        some.append(write)
        if len(some) == _CHUNK:
            state.apply(some)
            some = []
    state.apply(some)
