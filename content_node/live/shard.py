"""A shard that takes writes, in this process: base, log, and the served view of both.

Three threads use it: the event loop calls it, the commit thread stores writes, and a third thread
prepares the next base.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import eq
from pathlib import Path

import structlog

from winnow.content_node.live.closing import Closing
from winnow.content_node.live.custody import OWNED, Custody, Role, write_custody
from winnow.content_node.live.failures import write_failure
from winnow.content_node.live.group_commit import GroupCommit
from winnow.content_node.live.half_log import log_id_of_half, log_id_of_part
from winnow.content_node.live.limits import WriteLimits, check_count, direct_write_refusal
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.sequence_waiter import SequenceWaiter
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.tenant_usage import TenantUsages
from winnow.content_node.live.word_counts import WordTally, word_counts_at_build
from winnow.content_node.live.write_conflict import WriteConflict, with_number
from winnow.content_node.merging.policy import MergeBacklog
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.deadline import Deadline
from winnow.domain.quota import StorageQuota, TenantUsage
from winnow.domain.tenant import id_of_no_passage, tenant_of
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotLoadedError,
    NotWritableError,
    OverloadedError,
    QuotaExceededError,
    UnavailableError,
    quota_error,
)
from winnow.faultpoints import reach
from winnow.journal.journal import JOURNAL
from winnow.passages.canonical import PassageDigest, same_content
from winnow.quoting import are

_log = structlog.get_logger("content_node")
_REPLAY_BATCH = 2_000
"""Writes of the log that are applied together."""
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
        self._state, self._words, self._log = state, words, log
        self.custody = custody
        """Whether this copy takes the writes, or the copy of another node."""
        self.publish_split: Callable[[], Awaitable[None]] | None = None
        """Publishes to the journal that the halves take the writes; None without a journal."""
        self._limits, self._metrics = limits, metrics
        self._usages = TenantUsages()
        self._on_new_view: Callable[[ShardView], None] = lambda _: None
        self._on_stored: Callable[[Sequence[LoggedWrite]], None] = lambda _: None
        self._served_view = self.view = state.view
        self._served_sequence = SequenceWaiter(state.view.sequence)
        self._word_changes = words.changes(state.sequence)
        self._group = GroupCommit(self._commit, self._publish)
        self.closed_since = 0
        """Version of the catalog since which front nodes are refused; 0 if they are not.

        It is set once all writes that were accepted before are served.
        """
        self._closed = Closing()
        self._broken_reason = ""
        """Why the shard takes no more writes: a durable write could not be applied. Else empty."""
        self._last_write = time.monotonic()
        self._tenant_deleted_at: float | None = None
        """When the first unmerged deletion of a tenant was applied; None without one."""
        self._note_deleted_tenant()
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
        self._on_stored = keep

    @property
    def base(self) -> StoredSegment:
        """The base that is served, without later writes."""
        return self._state.base

    def file_change(self) -> FileChange | None:
        """Checks the files of the served base; returns how they changed, None if they did not."""
        while True:
            base = self._state.base
            change = base.file_change()
            # a merge removes the files of a replaced base: check the new one then
            if base is self._state.base:
                return change

    @property
    def directory(self) -> Path:
        """The directory of the base that is served."""
        return self._state.base.files[0].path.parent

    @property
    def shard_directory(self) -> Path:
        """The directory of the shard, with its log."""
        return self._log.path.parent.parent

    @property
    def merged(self) -> int:
        """The number of the last write that the base holds."""
        return self._state.base.manifest.sequence

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
            passages=self._state.base.manifest.passages,
            rows=view.rows,
            dead=view.rows - view.passages,
            writes=view.sequence - self.merged,
            idle=time.monotonic() - self._last_write,
            since_tenant_deletion=(
                None
                if self._tenant_deleted_at is None
                else time.monotonic() - self._tenant_deleted_at
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
        self._check_owner()
        self._closed.check()
        self._admit_writes(len(writes))
        return await self._group.write(writes, deadline)

    def begin_closed(self, closing: Closing) -> None:
        """Closes a shard that is not served yet to writes of front nodes; see `close_to_fronts`."""
        self._closed, self.closed_since = closing, closing.since

    async def close_to_fronts(self, closing: Closing) -> None:
        """Refuses writes of front nodes as `closing` says, or takes them again.

        Raises UnavailableError if the node is leaving.
        """
        if self._closed == closing and self.closed_since == closing.since:
            return
        self.closed_since = 0
        await self._group.run_alone(partial(self._set_closed, closing))
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
        return await self._group.run_alone(partial(self._store_copied, writes, run))

    async def find_unchanged_copied(
        self, puts: Sequence[PassageDigest], run: int, deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts of a run of copying that would change nothing; raises `store_copied`'s
        errors.
        """
        self._closed.check_run(run)
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
            partial(self._store_from_journal, writes, journal_position, log_id)
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
        await self._group.run_alone(partial(self._store_followed, writes, log_id))

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
            self._check_owner()
            await self.publish_split()  # all replicas end at this entry of the journal
        elif self.follows_journal:
            raise NotWritableError("a shard that follows a journal cannot be handed over")
        else:
            await self._group.run_alone(partial(self._hand_over, node))
        return self.sequence

    async def take_over(self, log_id: str = "", journal_position: str = "") -> None:
        """Makes this copy the owner of the shard. The last owner must have handed the shard over.

        A half follows the journal of its shard from `journal_position`, if that is not empty.
        `log_id` is the id of the shard's log.

        Raises OSError if the owner cannot be recorded on the disk.
        """
        await self._group.run_alone(partial(self._take_over, log_id, journal_position))

    async def end_for_halves(self) -> None:
        """Refuses all later writes, because the halves of the shard take them.

        Raises as `hand_over`. Raises OverloadedError or NotWritableError instead of OSError.
        """
        try:
            await self._group.run_alone(partial(self._hand_over, ""))
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
        self._check_owner()
        self._admit_writes(len(writes))
        await asyncio.to_thread(self._limits.check, writes)
        if _quota_of(writes) is not None:
            await self._group.run_alone(partial(self._check_quota, writes))

    async def with_usage(
        self, writes: Sequence[Write], written: Sequence[Written]
    ) -> list[Written]:
        """Returns the results of writes with what their tenant has stored now.

        The writes are stored, so the results are also returned if that cannot be counted.
        """
        if _quota_of(writes) is None:
            return list(written)
        try:
            return await self._group.run_alone(partial(self._add_usage, writes, written))
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
        self._check_owner()
        self._closed.check()
        found = await self.find_unchanged_locally(puts, deadline)
        if any(found) and (tenant := tenant_of(puts[0].id)):
            self._admit_writes(1)
            (own,) = await self._group.run_alone(partial(self._store_no_op, tenant))
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
        return await self._group.run_alone(partial(self._find_unchanged, puts, deadline))

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Reads how many passages of the whole index had each word when it was built."""
        deadline.check("word counts were read")
        return await asyncio.to_thread(word_counts_at_build, self._state.base)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes of the built word counts by the served writes of this shard."""
        deadline.check("word counts were read")
        return self._word_changes

    async def swap(self, base: StoredSegment) -> None:
        """Serves `base` in place of the present base, and applies all later writes to it.

        Raises:
            ArtefactError: `base` and the log do not belong together; the old base stays served.

        """
        state = await asyncio.to_thread(self._prepare_state, base)
        await self._group.run_alone(partial(self._switch_to, state))

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

    def _commit(self, calls: Sequence[Sequence[Write]]) -> list[list[Written] | Exception]:
        """Stores the valid calls in one transaction; runs in the commit thread."""
        self._closed.check()  # the shard may have been closed since the calls were queued
        errors = [self._validation_error(writes) for writes in calls]
        valid = [writes for writes, error in zip(calls, errors, strict=True) if error is None]
        stored = iter(self._store_calls(valid))
        return [error or next(stored) for error in errors]

    def _validation_error(self, writes: Sequence[Write]) -> Exception | None:
        """Returns the error of the writes of one call; None if they are valid."""
        try:
            self._limits.check(writes)
        except Exception as error:  # noqa: BLE001 (the writes of other callers may be valid)
            return error
        return None

    def _store_from_journal(
        self, writes: Sequence[Write], journal_position: str, log_id: str
    ) -> list[Written]:
        """Checks and stores writes from a journal; runs in the commit thread."""
        self._limits.check_entry(writes)
        log_id = log_id_of_part(log_id, self._limits.shard, self._limits.shards)
        (written,) = self._store_calls([writes], journal_position, log_id)
        return _stored(written)

    def _store_calls(
        self,
        calls: Sequence[Sequence[Write]],
        journal_position: str | None = None,
        log_id: str = "",
    ) -> list[list[Written] | QuotaExceededError]:
        """Decides writes, makes them durable, and applies them to the view.

        Returns for each call the outcomes, or the error of a call beyond the quota of its tenant.
        """
        if self._broken_reason:
            raise NotWritableError(self._broken_reason)
        self._check_owner()  # the shard may have been handed over since the call was queued
        started = time.perf_counter()
        try:
            # Replicas of every software version must decide a journal entry alike. So a journal
            # entry counts as unchanged only if it is identical. Fronts have already dropped
            # unchanged passages.
            same = same_content if journal_position is None else eq
            ids = (write.id for writes in calls for write in writes)
            conflict = self._state.write_conflict(ids, same)
            decided = [self._decide(writes, conflict) for writes in calls]
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error
        if conflict.to_log or journal_position is not None:
            self._log.append(conflict.to_log, journal_position, log_id)
            passages = self._state.view.passages
            self._on_stored(conflict.to_log)
            self._apply(conflict.to_log)
            self._usages.apply(conflict.changes, self._state.view.passages - passages)
            self._log.acknowledge()
            self._metrics.batch.observe(len(conflict.to_log))
            self._metrics.commit.observe(time.perf_counter() - started)
        written: list[list[Written] | QuotaExceededError] = []
        for writes, results in zip(calls, decided, strict=True):
            if isinstance(results, QuotaExceededError):
                written.append(results)
                continue
            self._metrics.count_durable(results)
            written.append(self._add_usage(writes, results))
        return written

    def _decide(
        self, writes: Sequence[Write], conflict: WriteConflict
    ) -> list[Written] | QuotaExceededError:
        """Decides the writes of a call; takes them back if they exceed the quota of their tenant.

        Raises ArtefactError if the base was written to.
        """
        conflict.begin_call()
        written = [
            conflict.decide(each) if self._limits.holds(each.id) else conflict.pass_over(each)
            for each in writes
        ]
        quota = _quota_of(writes)
        if quota is None:
            return written
        tenant = tenant_of(writes[0].id)
        usage = self._usages.of(tenant, self._state.view)
        usage += conflict.changes.get(tenant, TenantUsage())
        limit = quota.exceeded_by(usage, conflict.change)
        if limit is None:
            return written
        used = getattr(usage, limit.value) - getattr(conflict.change, limit.value)
        conflict.undo_call()
        return quota_error(tenant, limit.value, getattr(quota, limit.value), used)

    def _check_quota(self, writes: Sequence[Write]) -> None:
        """Raises QuotaExceededError if writes exceed their quota; runs in the commit thread."""
        try:
            conflict = self._state.write_conflict(each.id for each in writes)
            decided = self._decide(writes, conflict)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error
        if isinstance(decided, QuotaExceededError):
            raise decided

    def _add_usage(self, writes: Sequence[Write], written: Sequence[Written]) -> list[Written]:
        """Adds the log, and with a quota what the tenant has stored, to results."""
        log_id, usage = self._log.log_id, None
        if _quota_of(writes) is not None:
            with contextlib.suppress(ArtefactError):  # the writes are stored all the same
                usage = self._usages.of(tenant_of(writes[0].id), self._state.view)
        return [replace(each, log_id=log_id, usage=usage) for each in written]

    def _set_closed(self, closing: Closing) -> None:
        """Sets which writes are taken; runs in the commit thread, between transactions."""
        self._closed = closing

    def _store_no_op(self, tenant: str) -> list[Written]:
        """Stores a write of a tenant that changes nothing; runs in the commit thread."""
        self._closed.check()
        (written,) = self._store_calls([[Write(id_of_no_passage(tenant))]])
        return _stored(written)

    def _store_copied(self, writes: Sequence[Write], run: int) -> list[Written]:
        """Checks and stores writes of a copied index; runs in the commit thread."""
        self._closed.check_run(run)
        self._limits.check(writes)
        (written,) = self._store_calls([writes])
        return _stored(written)

    def _store_followed(self, writes: Sequence[LoggedWrite], log_id: str) -> None:
        """Stores and applies writes of the owner; runs in the commit thread."""
        if self._broken_reason:
            raise NotWritableError(self._broken_reason)
        if self.custody.role is not Role.FOLLOWER:
            raise UnavailableError(f"this copy of the shard is the {self.custody.role.value}")
        if not writes:
            return
        self._log.append(writes, log_id=log_id)
        self._usages.forget(tenant_of(each.id) for each in writes)
        self._apply(writes)
        self._log.acknowledge()

    def _hand_over(self, node: str) -> None:
        """Records another node as the owner; runs in the commit thread, between transactions."""
        custody = Custody(Role.FORMER_OWNER, node, self.custody.moves)
        if self.custody == custody:
            return
        if self.custody.role is Role.FOLLOWER:
            raise UnavailableError(self.custody.refusal())
        if self.custody.role is Role.FORMER_OWNER:
            taker = f"node {self.custody.node}" if self.custody.node else "its halves"
            raise IdentityError(f"the writes of the shard were handed over to {taker} before")
        self._set_custody(custody)

    def _take_over(self, log_id: str, journal_position: str) -> None:
        """Becomes the owner; runs in the commit thread."""
        if journal_position:
            self._log.append([], journal_position, log_id_of_half(log_id, self._limits.shard))
            self._apply([])
            self._log.acknowledge()
        self._set_custody(Custody(moves=self.custody.moves + 1))

    def _set_custody(self, custody: Custody) -> None:
        """Records who takes the writes; runs in the commit thread."""
        write_custody(self.shard_directory, custody)
        self.custody = custody
        reach("custody.recorded")

    def _check_owner(self) -> None:
        """Raises UnavailableError if another node takes the writes."""
        if refusal := self.custody.refusal():
            raise UnavailableError(refusal)

    def _find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Compares puts with stored passages; runs in the commit thread."""
        deadline.check("passages were compared")  # checked here, since writes wait for this thread
        if self._broken_reason:
            raise NotWritableError(self._broken_reason)
        try:
            return self._state.find_unchanged(puts)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error

    def _apply(self, writes: Sequence[LoggedWrite]) -> None:
        """Applies durable writes to the view.

        This is not expected to fail. If it does, the shard takes no more writes until the node
        restarts.
        """
        try:
            self._state.set_log_id(self._log.log_id)
            self._state.apply(writes)
            self._words.count_writes(writes)
        except BaseException as error:
            self._broken_reason = f"applying a durable write failed ({error!r}): restart the node"
            _log.exception("durable write not visible: applying it failed")
            raise NotWritableError(self._broken_reason) from error
        self._word_changes = self._words.changes(self._state.sequence)
        self._last_write = time.monotonic() if writes else self._last_write
        self.view = self._state.view
        self._note_deleted_tenant()

    def _prepare_state(self, base: StoredSegment) -> LiveState:
        """Returns the state of `base` with the later writes that the log has now."""
        old, new = self._state.base.manifest, base.manifest
        if new.log_id != self._log.log_id or new.sequence < old.sequence:
            raise ArtefactError(
                f"the merged base (log {new.log_id or '(none)'}, up to write {new.sequence}) does "
                f"not continue the served base (log {self._log.log_id}, up to write "
                f"{old.sequence})"
            )
        state = LiveState(base, self._log.log_id)
        catch_up(state, self._log)
        return state

    def _switch_to(self, state: LiveState) -> None:
        """Applies the latest writes to `state` and makes it current; runs in the commit thread."""
        catch_up(state, self._log)
        self._state, self.view = state, state.view
        self._note_deleted_tenant()

    def _note_deleted_tenant(self) -> None:
        """Records when the deletion of a tenant began to wait for a merge."""
        if not self._state.has_deleted_tenant:
            self._tenant_deleted_at = None
        elif self._tenant_deleted_at is None:
            self._tenant_deleted_at = time.monotonic()

    def _publish(self) -> None:
        """Serves a changed view; runs on the event loop after each commit or other work."""
        if self.view is not self._served_view:
            self._served_view = self.view
            self._on_new_view(self._served_view)
            self._served_sequence.advance(self._served_view.sequence)
            self._update_metrics()

    def _update_metrics(self) -> None:
        self._metrics.set_served(self.sequence, self.sequence - self.merged)


def _quota_of(writes: Sequence[Write]) -> StorageQuota | None:
    """Returns the quota of the writes of a call; None if they have none."""
    return writes[0].quota if writes else None


def _stored(written: list[Written] | QuotaExceededError) -> list[Written]:
    """Returns the results of writes; raises their error."""
    if isinstance(written, QuotaExceededError):
        raise written
    return written


def catch_up(state: LiveState, log: WriteLog) -> None:
    """Applies all writes of a log that a state lacks."""
    writes = log.read_after(state.sequence, log.last)
    while batch := list(islice(writes, _REPLAY_BATCH)):
        state.apply(batch)
