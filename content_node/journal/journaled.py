"""A shard whose writes go through a journal: published first, then applied by every replica.

A call returns the outcome and the number of each write, once this replica has applied the writes.
All replicas apply the same entries in the same order, so a write has the same number in each.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Protocol
from uuid import uuid4

import structlog

from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.journal.outstanding import OutstandingPublishes
from winnow.content_node.live.closing import Closing
from winnow.content_node.live.write_conflict import with_number
from winnow.deadline import Deadline
from winnow.domain.tenant import id_of_no_passage, tenant_of
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import (
    DeadlineExceededError,
    LeavingError,
    NotWritableError,
    UnavailableError,
    WinnowError,
)
from winnow.journal.journal import Journal, JournalEntry
from winnow.passages.canonical import PassageDigest
from winnow.shard_service.attempts import LATER_ATTEMPT

_log = structlog.get_logger("content_node")
_SPLIT_SECONDS = 10.0
"""Seconds until publishing a split is given up, and tried again."""
_CATCH_UP_SECONDS = 10.0
"""Seconds until catching up with the journal is given up, and tried again."""
_RETRY_SECONDS = 2.0
Check = Callable[[], None]
"""Raises an error if the shard does not take writes of a caller now."""


class FollowingShard(Protocol):
    """The interface of a shard that follows a journal: a `LiveShard`."""

    async def check_writes(self, writes: Sequence[Write]) -> None:
        """Raises an error for writes that the shard cannot take."""

    async def with_usage(
        self, writes: Sequence[Write], written: Sequence[Written]
    ) -> list[Written]:
        """Returns the results of writes with what their tenant has stored now."""

    async def find_unchanged_locally(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing, given the writes applied by this replica."""

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Implements `ShardWriter.word_counts_at_build`."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Implements `ShardWriter.changes`."""


class JournaledShard:
    """A `ShardWriter` that publishes writes to a journal, which its shard follows."""

    def __init__(
        self,
        journal: Journal,
        shard: FollowingShard,
        messages: JournalMessages,
        outstanding: OutstandingPublishes | None = None,
    ) -> None:
        """`shard` is the local replica, which applies the entries of `journal`.

        `messages` encodes writes as entries. `outstanding` tracks its publishes; None to create it.
        """
        self._journal, self._shard, self._messages = journal, shard, messages
        self._outstanding = outstanding or OutstandingPublishes()
        self.closed_since = 0
        """Version of the catalog since which front nodes are refused; 0 if they are not.

        It is set once this replica has applied all writes that it accepted before. So after all
        replicas have set it, the one with the most writes has all writes.
        """
        self._closed = Closing()
        self._is_moving_away = False
        """Whether other nodes take the writes, because this replica is about to be removed."""
        self._catching_up: asyncio.Task[None] | None = None
        """Sets `closed_since` once this replica has caught up."""
        self._calls: dict[str, asyncio.Future[list[Written]]] = {}
        """The result of each call in flight, by the key of its entry."""
        self._end_error: WinnowError | None = None
        """Why all writes fail, once this replica has stopped following."""
        self._fault = ""
        """Why this replica cannot read or store entries for now; empty if it can."""

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Publishes writes; returns when the journal and this replica have stored them.

        All attempts of a call publish entries with the same keys, also if they reach different
        replicas. So an attempt that arrives after a later one finds that one's entry, and stores
        nothing.

        Raises:
            InvalidRequestError: a write is not for this shard; none was published.
            OverloadedError: this replica has too many unmerged writes.
            QuotaExceededError: the tenant would store more than the quota of the writes. Writes
                that are being published at the same time do not count.
            UnavailableError: this replica cannot read its journal or store entries, or the writes
                expired before the journal stored them. Another replica may take them. Or a later
                attempt has arrived.
            DeadlineExceededError: the journal may have stored the writes. If so, this replica
                applies them later.

        """
        attempt = attempt or WriteAttempt(uuid4().hex)
        written = await self._publish_writes(writes, attempt, deadline, self._check_open)
        return await self._shard.with_usage(writes, written)

    async def store_copied(
        self, writes: Sequence[Write], run: int, deadline: Deadline
    ) -> list[Written]:
        """Publishes writes of the index of which this shard's index is a copy.

        Raises IdentityError if the shard is not closed for this run of copying. Raises as `write`.
        """
        attempt, check = WriteAttempt(uuid4().hex), partial(self._check_run, run)
        return await self._publish_writes(writes, attempt, deadline, check)

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing.

        Another replica may have acknowledged writes that this one has not applied yet. So this
        replica catches up with the journal before it reports a put as unchanged.

        If there are some of a tenant, they get the number of a new write that changes nothing; see
        `WriteConflict.decide`.
        """
        self._check_open()
        await self._shard.check_writes([])
        unchanged = await self._shard.find_unchanged_locally(puts, deadline)
        if not any(unchanged):
            return unchanged  # writing a stored passage again does no harm
        found = await self._confirmed_unchanged(puts, deadline)
        self._check_open()  # after the switch of an alias, another index would have to confirm it
        return found

    async def find_unchanged_copied(
        self, puts: Sequence[PassageDigest], run: int, deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts of a run of copying that would change nothing.

        Raises as `store_copied`.
        """
        self._check_run(run)
        await self._shard.check_writes([])
        await self._catch_up(deadline)
        return await self._shard.find_unchanged_locally(puts, deadline)

    def close_to_fronts(self, closing: Closing) -> None:
        """Refuses writes of front nodes as `closing` says, or takes them again."""
        if closing == self._closed:
            return
        self._closed, self.closed_since = closing, 0
        if self._catching_up is not None:
            self._catching_up.cancel()
            self._catching_up = None
        if closing.since:
            self._catching_up = asyncio.create_task(self._catch_up_closed(closing))

    async def move_away(self) -> None:
        """Refuses all writes, since other replicas take them; returns when none can arrive in the
        journal any more. `stay` undoes it.
        """
        self._is_moving_away = True
        await self._outstanding.wait()

    def stay(self) -> None:
        """Takes writes again, because this replica is not removed."""
        self._is_moving_away = False

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Returns the counts of the shard as it was built."""
        return await self._shard.word_counts_at_build(deadline)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes that this replica has applied."""
        return await self._shard.changes(deadline)

    async def publish_split(self) -> None:
        """Publishes that the halves of the shard take all later writes; returns once this replica
        has applied the entry, and so takes none.

        Raises UnavailableError or DeadlineExceededError if that is unknown. Call it again then.
        """
        await self._max_entry_bytes()
        deadline = Deadline.after(_SPLIT_SECONDS)
        await self._publish_new(self._messages.split_entry(), deadline)

    def deliver_result(self, entry: JournalEntry, result: list[Written] | Exception) -> None:
        """Passes the results of an entry, or its error, to the call that published it here."""
        future = self._calls.get(entry.key)
        if future is None or future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

    def set_fault(self, reason: str) -> None:
        """Sets why this replica cannot read its journal or store entries; empty once it can."""
        self._fault = reason

    def stop_following(self, reason: str) -> None:
        """Fails all calls from now on, since the journal cannot be followed."""
        self._fail_calls(NotWritableError(f"this replica no longer follows its journal: {reason}"))

    def end_for_halves(self) -> None:
        """Fails all calls from now on, since the halves of the shard take the writes."""
        self._fail_calls(UnavailableError("the shard was split in two: try again"))

    def start_leaving(self) -> None:
        """Fails all calls from now on, since the node ends; another replica takes the writes."""
        self._fail_calls(LeavingError("the node is leaving"))

    def _fail_calls(self, error: WinnowError) -> None:
        self._end_error = self._end_error or error
        if self._catching_up is not None:
            self._catching_up.cancel()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(error)

    async def _publish_writes(
        self, writes: Sequence[Write], attempt: WriteAttempt, deadline: Deadline, check: Check
    ) -> list[Written]:
        """Publishes writes in entries that `check` allows; returns when all were applied."""
        self._check_not_ended()
        check()
        # before the check of faults: a merge that is behind is the more precise reason
        await self._shard.check_writes(writes)
        max_bytes = await self._max_entry_bytes()
        entries = await asyncio.to_thread(lambda: list(self._messages.encode(writes, max_bytes)))
        written: list[Written] = []
        for number, content in enumerate(entries):
            part = WriteAttempt(f"{attempt.call}.{number}", attempt.number)
            written += await self._publish_and_wait(content, part, deadline, check)
        return written

    async def _confirmed_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts of a caller that would change nothing, after it has caught up."""
        tenant = tenant_of(puts[0].id)
        if not tenant:
            await self._catch_up(deadline)
            return await self._shard.find_unchanged_locally(puts, deadline)
        max_bytes = await self._max_entry_bytes()
        (no_op,) = self._messages.encode([Write(id_of_no_passage(tenant))], max_bytes)
        (own,) = await self._publish_new(no_op, deadline, self._check_open)
        unchanged = await self._shard.find_unchanged_locally(puts, deadline)
        if any(each.sequence > own.sequence for each in unchanged if each is not None):
            # a later write may have made a put unchanged: the number must include it
            (own,) = await self._publish_new(no_op, deadline, self._check_open)
        return with_number(unchanged, own)

    async def _catch_up(self, deadline: Deadline) -> None:
        """Returns when this replica has applied all entries that the journal has now."""
        await self._max_entry_bytes()
        await self._publish_new(self._messages.empty_entry(), deadline)

    async def _catch_up_closed(self, closing: Closing) -> None:
        """Sets `closed_since` once all writes that were accepted before have been applied."""
        await self._outstanding.wait()
        while True:
            try:
                await self._catch_up(Deadline.after(_CATCH_UP_SECONDS))
            except Exception as error:  # noqa: BLE001 (nobody awaits this task)
                _log.warning("not closed to writes yet", reason=str(error) or repr(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self.closed_since = closing.since
                return

    async def _max_entry_bytes(self) -> int:
        """Returns the largest size of an entry; opens the journal if it is not open yet."""
        if not self._journal.max_bytes:
            await self._journal.open()
        return self._journal.max_bytes

    async def _publish_new(
        self, content: bytes, deadline: Deadline, check: Check | None = None
    ) -> list[Written]:
        """Publishes an entry that is no attempt of an earlier call; see `_publish_and_wait`."""
        attempt = WriteAttempt(uuid4().hex)
        return await self._publish_and_wait(content, attempt, deadline, check)

    async def _publish_and_wait(
        self,
        content: bytes,
        attempt: WriteAttempt,
        deadline: Deadline,
        check: Check | None = None,
    ) -> list[Written]:
        """Publishes an entry; returns its results once this replica has applied it.

        `check` allows an entry with writes; None for one without any.
        """
        for number in count():
            written = await self._publish_once(content, number, attempt, deadline, check)
            if written is not None:
                return written
        raise AssertionError  # the loop has no end

    async def _publish_once(
        self,
        content: bytes,
        number: int,
        attempt: WriteAttempt,
        deadline: Deadline,
        check: Check | None,
    ) -> list[Written] | None:
        """Publishes an entry; returns its results once this replica has applied it.

        Returns None if the journal has an entry with the key from an earlier attempt. Its results
        may be gone, so the entry with the next number gets them. Raises UnavailableError if the
        entry is of a later attempt: newer writes may have replaced it.
        """
        key = f"{attempt.call}+{number}"
        self._check_followed()  # again for each entry: nothing would deliver its result otherwise
        if check is not None:
            check()
        future: asyncio.Future[list[Written]] = asyncio.get_running_loop().create_future()
        self._calls[key] = future
        try:
            with self._outstanding.track() if check is not None else nullcontext():
                published = await self._journal.publish(content, key, deadline, attempt.number)
            if published.is_duplicate and not future.done():
                if published.attempt > attempt.number:
                    raise UnavailableError(LATER_ATTEMPT)
                return None
            async with asyncio.timeout(max(deadline.left(), 0)):
                return await future
        except TimeoutError as error:
            raise DeadlineExceededError(
                "the journal has the writes, but this replica did not store them in time"
            ) from error
        finally:
            if self._calls.get(key) is future:  # else a later attempt has taken its place
                del self._calls[key]
            if not future.cancel() and not future.cancelled():
                future.exception()  # else asyncio would warn about it after a failed publish

    def _check_not_ended(self) -> None:
        if self._end_error is not None:
            raise self._end_error

    def _check_open(self) -> None:
        """Raises UnavailableError if the shard takes no writes of front nodes."""
        if self._is_moving_away:
            raise UnavailableError("the shard moves to another node: try again")
        self._closed.check()

    def _check_run(self, run: int) -> None:
        """Raises an error unless the shard takes the writes of a run of copying."""
        self._closed.check_run(run)
        if self.closed_since != run:
            raise UnavailableError("this replica has not caught up with its journal yet")

    def _check_followed(self) -> None:
        self._check_not_ended()
        if self._fault:
            raise UnavailableError(f"this replica does not keep up with its journal: {self._fault}")
