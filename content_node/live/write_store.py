"""What the commit thread does with writes: it decides them, makes them durable and applies them.

It knows no event loop and no callers. `LiveShard` queues the calls and serves the views.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from operator import eq
from pathlib import Path

import structlog

from winnow.content_node.live.closing import Closing
from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.live.half_log import log_id_of_half, log_id_of_part
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.tenant_usage import TenantUsages
from winnow.content_node.live.word_counts import WordTally
from winnow.content_node.live.write_conflict import WriteConflict
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.content_node.shard.view import ShardView
from winnow.deadline import Deadline
from winnow.domain.quota import StorageQuota, TenantUsage
from winnow.domain.tenant import id_of_no_passage, tenant_of
from winnow.domain.write import Write, Written
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotLoadedError,
    NotWritableError,
    QuotaExceededError,
    UnavailableError,
    quota_error,
)
from winnow.faultpoints import reach
from winnow.passages.canonical import PassageDigest, same_content

_log = structlog.get_logger("content_node")
_REPLAY_BATCH = 2_000
"""Writes of the log that are applied together."""


class WriteStore:
    """The log and the state of a shard, as one store of writes.

    Methods are called between transactions, by one thread at a time. Any thread may read the
    attributes.
    """

    def __init__(
        self,
        *,
        state: LiveState,
        words: WordTally,
        log: WriteLog,
        limits: WriteLimits,
        metrics: WriteMetrics,
        custody: Custody,
    ) -> None:
        """Takes loaded parts; `words` counts all writes of `state`."""
        self._state, self._words, self._log = state, words, log
        self._limits, self._metrics = limits, metrics
        self.custody = custody
        """Whether this copy takes the writes, or the copy of another node."""
        self.view: ShardView = state.view
        """The view with all durable writes."""
        self.word_changes = words.changes(state.sequence)
        """How the writes of `view` have changed the built word counts."""
        self.last_write = time.monotonic()
        """When a write was applied last; at first, when the store was made."""
        self.tenant_deleted_at: float | None = None
        """When the first unmerged deletion of a tenant was applied; None without one."""
        self._usages = TenantUsages()
        self.closing = Closing()
        """Which writes are taken."""
        self._broken_reason = ""
        """Why the shard takes no more writes: a durable write could not be applied. Else empty."""
        self._on_stored: Callable[[Sequence[LoggedWrite]], None] = lambda _: None
        self._note_deleted_tenant()

    def on_stored(self, keep: Callable[[Sequence[LoggedWrite]], None]) -> None:
        """Registers `keep`; see `LiveShard.on_stored`."""
        self._on_stored = keep

    @property
    def base(self) -> StoredSegment:
        """The base of `view`, without later writes."""
        return self._state.base

    @property
    def directory(self) -> Path:
        """The directory of the shard, with its log."""
        return self._log.path.parent.parent

    def commit(self, calls: Sequence[Sequence[Write]]) -> list[list[Written] | Exception]:
        """Stores the valid calls in one transaction; returns the results or the error of each.

        Raises UnavailableError if the shard is closed to front nodes, or is not the owner. Raises
        NotWritableError or OverloadedError if the disk fails.
        """
        self.closing.check()  # the shard may have been closed since the calls were queued
        errors = [self._validation_error(writes) for writes in calls]
        valid = [writes for writes, error in zip(calls, errors, strict=True) if error is None]
        stored = iter(self._store_calls(valid))
        return [error or next(stored) for error in errors]

    def store_from_journal(
        self, writes: Sequence[Write], journal_position: str, log_id: str
    ) -> list[Written]:
        """Checks and stores the writes of an entry of the journal, with the position of the entry.

        A log that does not exist yet gets the id `log_id`. Raises as `commit`.
        """
        self._limits.check_entry(writes)
        log_id = log_id_of_part(log_id, self._limits.shard, self._limits.shards)
        (written,) = self._store_calls([writes], journal_position, log_id)
        return _stored(written)

    def store_copied(self, writes: Sequence[Write], run: int) -> list[Written]:
        """Checks and stores writes of a run of copying.

        Raises IdentityError if the shard does not take the writes of this run. Raises as `commit`.
        """
        self.closing.check_run(run)
        self._limits.check(writes)
        (written,) = self._store_calls([writes])
        return _stored(written)

    def store_followed(self, writes: Sequence[LoggedWrite], log_id: str) -> None:
        """Stores writes of the owner's log under their numbers.

        Raises UnavailableError if this copy is not a follower. Raises as `commit`.
        """
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

    def store_no_op(self, tenant: str) -> list[Written]:
        """Stores a write of a tenant that changes nothing, for its number; raises as `commit`."""
        self.closing.check()
        (written,) = self._store_calls([[Write(id_of_no_passage(tenant))]])
        return _stored(written)

    def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing; None for the others.

        Raises NotLoadedError if the base was written to, and DeadlineExceededError.
        """
        deadline.check("passages were compared")  # checked here, since writes wait for this thread
        if self._broken_reason:
            raise NotWritableError(self._broken_reason)
        try:
            return self._state.find_unchanged(puts)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error

    def check_quota(self, writes: Sequence[Write]) -> None:
        """Raises QuotaExceededError if writes exceed their quota."""
        try:
            conflict = self._state.write_conflict(each.id for each in writes)
            decided = self._decide(writes, conflict)
        except ArtefactError as error:  # the base was written to
            raise NotLoadedError(str(error)) from error
        if isinstance(decided, QuotaExceededError):
            raise decided

    def add_usage(self, writes: Sequence[Write], written: Sequence[Written]) -> list[Written]:
        """Adds the log, and with a quota what the tenant has stored, to results."""
        log_id, usage = self._log.log_id, None
        if quota_of(writes) is not None:
            with contextlib.suppress(ArtefactError):  # the writes are stored all the same
                usage = self._usages.of(tenant_of(writes[0].id), self._state.view)
        return [replace(each, log_id=log_id, usage=usage) for each in written]

    def set_closing(self, closing: Closing) -> None:
        """Sets which writes are taken."""
        self.closing = closing

    def check_owner(self) -> None:
        """Raises UnavailableError if another node takes the writes."""
        if refusal := self.custody.refusal():
            raise UnavailableError(refusal)

    def hand_over(self, node: str) -> None:
        """Records that `node` takes the writes, or the halves of the shard if it is empty.

        Raises as `LiveShard.hand_over`.
        """
        custody = Custody(Role.FORMER_OWNER, node, self.custody.moves)
        if self.custody == custody:
            return
        if self.custody.role is Role.FOLLOWER:
            raise UnavailableError(self.custody.refusal())
        if self.custody.role is Role.FORMER_OWNER:
            taker = f"node {self.custody.node}" if self.custody.node else "its halves"
            raise IdentityError(f"the writes of the shard were handed over to {taker} before")
        self._set_custody(custody)

    def take_over(self, log_id: str, journal_position: str) -> None:
        """Becomes the owner, as `LiveShard.take_over` says."""
        if journal_position:
            self._log.append([], journal_position, log_id_of_half(log_id, self._limits.shard))
            self._apply([])
            self._log.acknowledge()
        self._set_custody(Custody(moves=self.custody.moves + 1))

    def prepare_state(self, base: StoredSegment) -> LiveState:
        """Returns the state of `base` with the later writes that the log has now.

        It may run while another thread stores writes. Raises ArtefactError if `base` does not
        continue the present base.
        """
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

    def switch_to(self, state: LiveState) -> None:
        """Applies the latest writes to `state` and makes it current."""
        catch_up(state, self._log)
        self._state, self.view = state, state.view
        self._note_deleted_tenant()

    def _validation_error(self, writes: Sequence[Write]) -> Exception | None:
        """Returns the error of the writes of one call; None if they are valid."""
        try:
            self._limits.check(writes)
        except Exception as error:  # noqa: BLE001 (the writes of other callers may be valid)
            return error
        return None

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
        self.check_owner()  # the shard may have been handed over since the call was queued
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
            written.append(self.add_usage(writes, results))
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
        quota = quota_of(writes)
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
        self.word_changes = self._words.changes(self._state.sequence)
        self.last_write = time.monotonic() if writes else self.last_write
        self.view = self._state.view
        self._note_deleted_tenant()

    def _set_custody(self, custody: Custody) -> None:
        """Records who takes the writes."""
        write_custody(self.directory, custody)
        self.custody = custody
        reach("custody.recorded")

    def _note_deleted_tenant(self) -> None:
        """Records when the deletion of a tenant began to wait for a merge."""
        if not self._state.has_deleted_tenant:
            self.tenant_deleted_at = None
        elif self.tenant_deleted_at is None:
            self.tenant_deleted_at = time.monotonic()


def quota_of(writes: Sequence[Write]) -> StorageQuota | None:
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
