"""A shard that takes writes, in this process: calls of writers, and the served view.

Three threads work for it: the event loop calls it, the commit thread stores writes (`WriteStore`),
and a third thread prepares the next base.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import structlog

from winnow.content_node.live.closing import Closing
from winnow.content_node.live.custody import OWNED, Custody, Role
from winnow.content_node.live.failures import write_failure
from winnow.content_node.live.group_commit import GroupCommit
from winnow.content_node.live.half_log import log_id_of_half
from winnow.content_node.live.limits import WriteLimits, check_count, direct_write_refusal
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.sequence_waiter import SequenceWaiter
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.word_counts import WordTally, word_counts_at_build
from winnow.content_node.live.write_conflict import with_number
from winnow.content_node.live.write_store import WriteStore, quota_of
from winnow.content_node.merging.policy import MergeBacklog
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.deadline import Deadline
from winnow.domain.tenant import tenant_of
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import (
    IdentityError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
)
from winnow.journal.journal import JOURNAL
from winnow.passages.canonical import PassageDigest
from winnow.quoting import are

_log = structlog.get_logger("content_node")
_MERGE_RETRY_AFTER = 2.0
"""Seconds after which a caller retries when too many writes were unmerged."""


class LiveShard:
    """A shard that takes writes.

    Implements `ShardWriter`. After a commit that changed the shard, questions search the new
    `view`.
    """

    def __init__(
        self,
        *,
        state: LiveState,
        words: WordTally,
        log: WriteLog,
        limits: WriteLimits,
        metrics: WriteMetrics,
        custody: Custody = OWNED,
    ) -> None:
        """Takes the parts that `open_live` has loaded; `words` counts all writes of `state`."""
        self._store = WriteStore(
            state=state, words=words, log=log, limits=limits, metrics=metrics, custody=custody
        )
        self._log, self._limits, self._metrics = log, limits, metrics
        self.publish_split: Callable[[], Awaitable[None]] | None = None
        """Publishes to the journal that the halves take the writes; None without a journal."""
        self._on_new_view: Callable[[ShardView], None] = lambda _: None
        self._served_view = state.view
        self._served_sequence = SequenceWaiter(state.view.sequence)
        self._group = GroupCommit(self._store.commit, self._publish)
        self.closed_since = 0
        """Version of the catalog since which front nodes are refused; 0 if they are not.

        It is set once all writes that were accepted before are served.
        """
        max_unmerged = 0 if limits.refusal else limits.max_unmerged
        metrics.observe_waiting(lambda: self._group.queued_writes, max_unmerged)
        self._update_metrics()

    def on_new_view(self, serve: Callable[[ShardView], None]) -> None:
        """Registers `serve`, which the event loop calls with every new view."""
        self._on_new_view = serve

    def on_stored(self, keep: Callable[[Sequence[LoggedWrite]], None]) -> None:
        """Registers `keep`, which the commit thread calls with durable writes of callers and of the
        journal, before they are served. It must not fail.
        """
        self._store.on_stored(keep)

    @property
    def view(self) -> ShardView:
        """The view with all durable writes. It is served a moment later."""
        return self._store.view

    @property
    def custody(self) -> Custody:
        """Whether this copy takes the writes, or the copy of another node."""
        return self._store.custody

    @property
    def base(self) -> StoredSegment:
        """The base that is served, without later writes."""
        return self._store.base

    def file_change(self) -> FileChange | None:
        """Checks the files of the served base; returns how they changed, None if they did not."""
        while True:
            base = self._store.base
            change = base.file_change()
            # a merge removes the files of a replaced base: check the new one then
            if base is self._store.base:
                return change

    @property
    def directory(self) -> Path:
        """The directory of the base that is served."""
        return self._store.base.files[0].path.parent

    @property
    def shard_directory(self) -> Path:
        """The directory of the shard, with its log."""
        return self._log.path.parent.parent

    @property
    def merged(self) -> int:
        """The number of the last write that the base holds."""
        return self._store.base.manifest.sequence

    @property
    def trimmed(self) -> int:
        """The number of the last write that the log no longer has; 0 if it has all."""
        return self._log.trimmed

    @property
    def sequence(self) -> int:
        """The number of the last write that is durable and served."""
        return self._served_view.sequence

    @property
    def journal_position(self) -> str:
        """The position of the last applied entry of a journal; empty if the log follows none."""
        return self._log.journal_position

    @property
    def log_id(self) -> str:
        """The id of the log; empty before the first write."""
        return self._log.log_id

    @property
    def takes_writes(self) -> bool:
        """Whether this copy takes the writes of the shard."""
        return self.custody.takes_writes

    @property
    def follows_journal(self) -> bool:
        """Whether the writes come from a journal, now or in an earlier run of the node."""
        return self.log_id.startswith(JOURNAL)

    def merge_backlog(self) -> MergeBacklog:
        """Returns the unmerged writes and deleted rows, by which the policy decides on a merge."""
        view = self._served_view
        return MergeBacklog(
            passages=self._store.base.manifest.passages,
            rows=view.rows,
            dead=view.rows - view.passages,
            writes=view.sequence - self.merged,
            idle=time.monotonic() - self._store.last_write,
            since_tenant_deletion=(
                None
                if self._store.tenant_deleted_at is None
                else time.monotonic() - self._store.tenant_deleted_at
            ),
        )

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes in their order; returns when they are durable and served.

        Calls store in the order in which they began, so `attempt` does not matter here. `writes`
        may be converted lazily: the commit thread reads and checks them.

        Raises:
            InvalidRequestError: a write does not fit this shard; none of the call was stored.
            NotWritableError: the node was started without feeding, its disk cannot be written, or
                the shard takes writes only from its journal.
            OverloadedError: too many writes are queued or unmerged, or the disk is full.
            QuotaExceededError: the tenant would store more than the quota of the writes.

        """
        if self.follows_journal:
            raise NotWritableError(direct_write_refusal(self.log_id))
        self._store.check_owner()
        self._store.closing.check()
        self._admit_writes(len(writes))
        return await self._group.write(writes, deadline)

    def begin_closed(self, closing: Closing) -> None:
        """Closes a shard that is not served yet to writes of front nodes; see `close_to_fronts`."""
        self._store.set_closing(closing)
        self.closed_since = closing.since

    async def close_to_fronts(self, closing: Closing) -> None:
        """Refuses writes of front nodes as `closing` says, or takes them again.

        Writes whose commit has failed are removed first. Otherwise a restart would find them,
        although the copy of the index lacks them. If they cannot be removed, `closed_since` stays
        0: call this again. Raises UnavailableError if the node is leaving.
        """
        if self._store.closing == closing and self.closed_since == closing.since:
            return
        self.closed_since = 0
        await self._group.run_alone(partial(self._store.set_closing, closing))
        if closing.since:
            try:
                await self.settle_log()
            except (OverloadedError, NotWritableError) as error:
                _log.warning("not closed to writes yet", reason=str(error))
                return
        self.closed_since = closing.since

    async def store_copied(
        self, writes: Sequence[Write], run: int, deadline: Deadline
    ) -> list[Written]:
        """Stores writes of the index of which this shard's index is a copy.

        Raises IdentityError if the shard is not closed for this run of copying. Raises as `write`.
        """
        deadline.check("the writes were stored")
        if self.follows_journal:
            raise NotWritableError(direct_write_refusal(self.log_id))
        self._admit_writes(len(writes))
        return await self._group.run_alone(partial(self._store.store_copied, writes, run))

    async def find_unchanged_copied(
        self, puts: Sequence[PassageDigest], run: int, deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts of a run of copying that would change nothing; raises `store_copied`'s
        errors.
        """
        self._store.closing.check_run(run)
        return await self.find_unchanged_locally(puts, deadline)

    async def store_from_journal(
        self, writes: Sequence[Write], journal_position: str, log_id: str = ""
    ) -> list[Written]:
        """Stores writes from a journal together with the position of their last entry.

        Calls must not overlap. A log that does not exist yet is created with the id `log_id`.
        Raises as `write`.
        """
        self._admit_writes(len(writes))
        return await self._group.run_alone(
            partial(self._store.store_from_journal, writes, journal_position, log_id)
        )

    async def store_followed(self, writes: Sequence[LoggedWrite], log_id: str) -> None:
        """Stores writes of the owner's log, which must follow the last write of this copy.

        A half stores the writes of the other half's passages as writes that change nothing, so
        that it has all sequence numbers. A log that does not exist yet is created with the id
        `log_id`.

        Raises IdentityError if this copy follows another log than `log_id`. Raises as `write`.
        """
        if self.custody.parent is not None:
            log_id = log_id_of_half(log_id, self._limits.shard)
            writes = [each if self._limits.holds(each.id) else each.as_no_op() for each in writes]
        if self.log_id not in ("", log_id):
            raise IdentityError(
                f"this copy of the shard follows log {self.log_id}, but its owner has log {log_id}"
            )
        self._admit_writes(len(writes))
        await self._group.run_alone(partial(self._store.store_followed, writes, log_id))

    async def hand_over(self, node: str) -> int:
        """Stops taking writes permanently; returns the sequence number of the last write.

        The caller `node` takes the writes once it has stored that write.

        An empty `node` means that the halves of the shard take the writes.

        Raises:
            NotWritableError: the shard follows a journal, so every replica takes writes. It can
                only be split.
            IdentityError: the shard was handed over to another node.
            UnavailableError: this copy is not the owner.
            OSError: the new owner cannot be recorded on the disk.

        """
        if self.custody.role is Role.FORMER_OWNER and self.custody.node == node:
            return self.sequence
        if not node and self.publish_split is not None:
            self._store.check_owner()
            await self.publish_split()  # all replicas end at this entry of the journal
        elif self.follows_journal:
            raise NotWritableError("a shard that follows a journal cannot be handed over")
        else:
            await self._group.run_alone(partial(self._store.hand_over, node))
        return self.sequence

    async def take_over(self, log_id: str = "", journal_position: str = "") -> None:
        """Makes this copy the owner of the shard. The last owner must have handed the shard over.

        A half follows the journal of its shard from `journal_position`, if that is not empty.
        `log_id` is the id of the shard's log.

        Raises OSError if the owner cannot be recorded on the disk.
        """
        await self._group.run_alone(partial(self._store.take_over, log_id, journal_position))

    async def end_for_halves(self) -> None:
        """Refuses all later writes, because the halves of the shard take them.

        Raises as `hand_over`. Raises OverloadedError or NotWritableError instead of OSError.
        """
        try:
            await self._group.run_alone(partial(self._store.hand_over, ""))
        except OSError as error:
            raise write_failure(error, self.shard_directory) from error

    async def wait_for_write(self, sequence: int, deadline: Deadline) -> None:
        """Returns when a write is served; raises DeadlineExceededError after the deadline."""
        await self._served_sequence.wait(sequence, deadline)

    def logged_after(self, sequence: int, limit: int) -> list[LoggedWrite]:
        """Reads up to `limit` served writes after `sequence` from the log. Blocks on the disk.

        Raises ArtefactError if the log lacks some of them, or is damaged.
        """
        return list(islice(self._log.read_after(sequence, self.sequence), limit))

    async def settle_log(self) -> None:
        """Removes writes whose commit has failed from the file of the log.

        Raises OverloadedError or NotWritableError if that fails.
        """
        if self._log.is_uncertain:
            await self._group.run_alone(self._log.settle)

    def has_link(self, sequence: int, link: bytes) -> bool:
        """Whether a write has this link, and its commit succeeded; runs in any thread.

        The link is the checksum of the write and of all writes before it. Raises ArtefactError if
        the log cannot be read.
        """
        return self._log.has_link(sequence, link)

    def hold_log(self, node: str, after: int) -> None:
        """Keeps writes later than `after` in the log for a while, because `node` copies them."""
        self._log.hold(node, after)

    async def check_writes(self, writes: Sequence[Write]) -> None:
        """Checks that writes can be stored, without storing them; raises as `write`."""
        self._store.check_owner()
        self._admit_writes(len(writes))
        await asyncio.to_thread(self._limits.check, writes)
        if quota_of(writes) is not None:
            await self._group.run_alone(partial(self._store.check_quota, writes))

    async def with_usage(
        self, writes: Sequence[Write], written: Sequence[Written]
    ) -> list[Written]:
        """Returns the results of writes with what their tenant has stored now.

        The writes are stored, so the results are also returned if that cannot be counted.
        """
        if quota_of(writes) is None:
            return list(written)
        try:
            return await self._group.run_alone(partial(self._store.add_usage, writes, written))
        except UnavailableError:  # the node is leaving
            return list(written)

    def _admit_writes(self, writes: int) -> None:
        """Raises an error if the shard cannot take this number of writes now."""
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        check_count("writes", writes)
        unmerged = self.sequence - self.merged + self._group.queued_writes + writes
        if unmerged > self._limits.max_unmerged:
            raise OverloadedError(
                f"{are(unmerged, 'write')} not merged yet, at most {self._limits.max_unmerged}: "
                "try again, or raise --max-unmerged",
                _MERGE_RETRY_AFTER,
            )

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing, given all writes acknowledged before.

        If there are some of a tenant, they get the number of a new write that changes nothing; see
        `WriteConflict.decide`.

        Raises:
            NotWritableError: as `write`. A shard that follows a journal does not know which writes
                its other replicas acknowledged.

        """
        if self.follows_journal:
            raise NotWritableError(direct_write_refusal(self.log_id))
        self._store.check_owner()
        self._store.closing.check()
        found = await self.find_unchanged_locally(puts, deadline)
        if any(found) and (tenant := tenant_of(puts[0].id)):
            self._admit_writes(1)
            (own,) = await self._group.run_alone(partial(self._store.store_no_op, tenant))
            return with_number(found, own)
        return found

    async def find_unchanged_locally(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing in this replica.

        Returns the same as `find_unchanged`. It runs between two transactions, so that only durable
        writes count.
        """
        if self._limits.refusal:
            raise NotWritableError(self._limits.refusal)
        check_count("passages", len(puts))
        self._limits.check_ids([put.id for put in puts])
        return await self._group.run_alone(partial(self._store.find_unchanged, puts, deadline))

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Reads how many passages of the whole index had each word when it was built."""
        deadline.check("word counts were read")
        return await asyncio.to_thread(word_counts_at_build, self._store.base)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes of the built word counts by the served writes of this shard."""
        deadline.check("word counts were read")
        return self._store.word_changes

    async def swap(self, base: StoredSegment) -> None:
        """Serves `base` in place of the present base, and applies all later writes to it.

        Raises:
            ArtefactError: `base` and the log do not belong together; the old base stays served.

        """
        state = await asyncio.to_thread(self._store.prepare_state, base)
        await self._group.run_alone(partial(self._store.switch_to, state))

    async def trim(self, upto: int) -> bool:
        """Removes the writes up to `upto` from the log, except those that the base lacks or that
        another node still copies.

        A former owner removes no writes, because the new owner may lack some.

        Returns False if writes were kept for another node, which may be removed later. Raises as
        `WriteLog.trim`.
        """
        if self._limits.refusal or self.custody.role is Role.FORMER_OWNER:
            return True
        upto = min(upto, self.merged)
        await asyncio.to_thread(self._log.trim, upto)
        return self.trimmed >= min(upto, self._log.last)

    def abandon(self) -> None:
        """Closes a shard that was never served."""
        self._log.close()

    async def close(self) -> None:
        """Stores the queued writes, and releases the directory."""
        await self._group.close(self._log.close)

    def _publish(self) -> None:
        """Serves a changed view; runs on the event loop after each commit or other work."""
        if self._store.view is not self._served_view:
            self._served_view = self._store.view
            self._on_new_view(self._served_view)
            self._served_sequence.advance(self._served_view.sequence)
            self._update_metrics()

    def _update_metrics(self) -> None:
        self._metrics.set_served(self.sequence, self.sequence - self.merged)
