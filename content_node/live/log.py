"""The durable log of a shard: every write after its base.

It is an SQLite database in WAL mode, with every commit synced. The first write creates it. One
process writes, any number of processes read (`content_node.live.reading`).
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.acknowledged import (
    ACKNOWLEDGED_FILE,
    AcknowledgedFile,
    AcknowledgedWrite,
)
from winnow.content_node.live.database import checkpoint, connect, create_log, truncate_wal
from winnow.content_node.live.failures import damaged_log, write_failure
from winnow.content_node.live.locks import LOCK_FILE, AlternatingLock, DirectoryLock
from winnow.content_node.live.log_entry import LoggedWrite, next_link
from winnow.content_node.live.reading import read_link, read_writes
from winnow.content_node.live.schema import (
    INSERT,
    State,
    TrimmedWrites,
    get_state,
    get_trimmed,
    link_at,
    put_state,
    put_trimmed,
    roll_back,
    to_row,
)
from winnow.content_node.live.word_counts import WordTally
from winnow.errors import ArtefactError, NotWritableError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory

_TRIM_BATCH = 256
"""Writes that are trimmed in one transaction. Commits wait for this transaction."""
HOLD_SECONDS = 300.0
"""Seconds for which writes are kept for a node that verifies and loads a copy of the shard."""


class WriteLog:
    """The log of one shard. One thread appends; the same or another thread trims.

    Methods that write store all or nothing. They raise `OverloadedError` if the disk is full or
    fails, and `NotWritableError` if the log cannot be written at all.
    """

    def __init__(
        self,
        path: Path,
        directory_lock: DirectoryLock | None = None,
        position: tuple[State, TrimmedWrites] | None = None,
        log_id: str = "",
    ) -> None:
        """Holds a log that `open_log` has checked.

        `position` is that of the log, or None if there is no log yet. A new log gets the id
        `log_id`, or a random one.
        """
        self.path = path
        self._directory_lock = directory_lock
        self._state: State | None = None
        self._trimmed: TrimmedWrites | None = None
        if position is not None:
            self._state, self._trimmed = position
        self._new_id = log_id
        self._new_position = ""
        self.overwrites = False
        """Whether trimmed writes are overwritten with zeros. Set it before the first write."""
        self._uncertain_states: set[State] = set()
        """States that may be on disk instead of `_state`: a failed commit may have reached it."""
        self._connection: sqlite3.Connection | None = None
        self._acknowledged: AcknowledgedFile | None = None
        self._thread_lock = AlternatingLock()
        self._holds: dict[str, tuple[int, float]] = {}
        """By node name: the last write that the node has, and the time when its hold ends."""
        self._closed = False
        self._opened_file: os.stat_result | None = None
        """Identity of the file to which the connection writes."""

    @property
    def log_id(self) -> str:
        """The id of the log; empty before the first write."""
        return self._state.log_id if self._state else ""

    @property
    def last(self) -> int:
        """The number of the last write; 0 if there was none."""
        return self._state.last if self._state else 0

    @property
    def journal_position(self) -> str:
        """The position of the last applied entry of a journal; empty if the log follows none."""
        return self._state.journal_position if self._state else ""

    @property
    def trimmed(self) -> int:
        """The number of the last write that was trimmed."""
        return self._trimmed.last if self._trimmed else 0

    @property
    def trimmed_words(self) -> WordTally:
        """The changes of word counts by the trimmed writes."""
        return self._trimmed.words if self._trimmed else WordTally()

    def append(
        self, writes: Sequence[LoggedWrite], journal_position: str | None = None, log_id: str = ""
    ) -> None:
        """Stores the next writes of the log in one transaction; returns when it is durable.

        The position in a journal is stored with them; None leaves it unchanged. A log that does not
        exist yet is created with the id `log_id`, if there is one.
        """
        self._new_id = log_id or self._new_id
        # with writes, the position must wait for their transaction
        self._new_position = "" if writes else journal_position or ""
        with self._thread_lock, self._transaction() as (connection, state):
            link = state.link
            rows = []
            for sequence, write in enumerate(writes, state.last + 1):
                if write.sequence != sequence:
                    raise ValueError(f"write {write.sequence} does not follow {sequence - 1}")
                link = next_link(link, write)
                rows.append(to_row(write, link))
            connection.executemany(INSERT, rows)
            new = replace(state, last=state.last + len(rows), link=link)
            if journal_position is not None:
                new = replace(new, journal_position=journal_position)
            put_state(connection, new)
            reach("log.inserted")
            self._uncertain_states.add(new)
            connection.execute("COMMIT")
            self._state = new
            self._uncertain_states.clear()
        reach("log.committed")

    def acknowledge(self) -> None:
        """Records that all appended writes are acknowledged, before callers get results.

        On failure callers get an error, although the writes are stored and may be served.
        """
        if self._state is None or self._acknowledged is None:
            return
        try:
            self._acknowledged.write(AcknowledgedWrite(self._state.last, self._state.link))
        except OSError as error:
            raise write_failure(error, self.path.with_name(ACKNOWLEDGED_FILE)) from error
        reach("log.acknowledged")

    def read_after(self, sequence: int, up_to: int | None = None) -> Iterator[LoggedWrite]:
        """Reads the writes after `sequence` up to `up_to`, by default to the last one.

        Raises ArtefactError if any is missing.
        """
        return read_writes(self.path, sequence, up_to) if self._state else iter(())

    @property
    def is_uncertain(self) -> bool:
        """Whether a failed commit may have reached the disk."""
        return bool(self._uncertain_states)

    def settle(self) -> None:
        """Removes writes from the disk whose commit has failed, if `is_uncertain`.

        The next write removes them, too. Until then, other readers of the file may find them.
        """
        with self._thread_lock, self._transaction() as (connection, _):
            connection.execute("COMMIT")
            self._uncertain_states.clear()

    def has_link(self, sequence: int, link: bytes) -> bool:
        """Whether the log has a write with this number and this link, and its commit succeeded.

        Also true if this object has no log. Raises ArtefactError if the write was trimmed.
        """
        with self._thread_lock:
            state = self._state
        if state is None:
            return True
        if sequence > state.last:
            return False
        return link == (state.link if sequence == state.last else read_link(self.path, sequence))

    def trim(self, up_to: int) -> None:
        """Removes the writes up to `up_to`, which a base holds, except those kept by `hold`.

        Appends may run in between. Also truncates SQLite's write-ahead log, even if there is no
        write to remove: every write extends that file, and merges do not shrink it.
        """
        self._shrink_wal()  # removing writes needs some free space, too
        up_to = min(up_to, self._last_trimmable())
        while self.trimmed < min(up_to, self.last):
            with self._thread_lock, self._transaction() as (connection, _):
                trimmed = self._trim_batch(connection, up_to)
                connection.execute("COMMIT")
                self._trimmed = trimmed
        self._shrink_wal()

    def hold(self, node: str, after: int) -> None:
        """Keeps the writes that follow write number `after`, because `node` still copies them.

        They are kept for `HOLD_SECONDS`. Replaces an earlier hold of the same node.
        """
        self._holds[node] = after, time.monotonic() + HOLD_SECONDS

    def _last_trimmable(self) -> int:
        """Returns the number of the last write that no hold keeps in the log."""
        now = time.monotonic()
        held_after = [after for after, end in list(self._holds.values()) if end > now]
        return min([self.last, *held_after])

    def close(self) -> None:
        """Closes the log and releases the lock of its directory. Later appends fail."""
        with self._thread_lock:
            self._closed = True
            self._close_connection()
            if self._acknowledged is not None:
                self._acknowledged.close()
            if self._directory_lock is not None:
                self._directory_lock.release()

    def _shrink_wal(self) -> None:
        if self._state is None:
            return
        with self._thread_lock:
            if self._connection is not None and not self._is_same_file():
                raise self._replaced_error()
        try:
            checkpoint(self.path)
            with self._thread_lock:
                if not self._closed:
                    truncate_wal(self.path)
        except (sqlite3.Error, OSError) as error:
            raise write_failure(error, self.path) from error

    def _trim_batch(self, connection: sqlite3.Connection, up_to: int) -> TrimmedWrites:
        before = get_trimmed(connection)  # a commit that failed may have reached the disk
        last = max(min(up_to, self.last, before.last + _TRIM_BATCH), before.last)
        words = before.words.copy()
        words.count_writes(read_writes(self.path, before.last, last))
        trimmed = TrimmedWrites(last, link_at(connection, last), words)
        connection.execute("DELETE FROM writes WHERE sequence <= ?", (last,))
        put_trimmed(connection, trimmed)
        return trimmed

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """Begins a transaction. The caller commits it; otherwise it is rolled back."""
        try:
            connection, state = self._open_for_writing()
            connection.execute("BEGIN IMMEDIATE")
            reach("log.begun")
            on_disk = get_state(connection)
            if on_disk not in {state, *self._uncertain_states} or not self._is_same_file():
                raise self._replaced_error()
            self._uncertain_states &= {on_disk}
            if on_disk != state:
                roll_back(connection, state)  # no caller got a result
            yield connection, state
        except (sqlite3.Error, OSError) as error:
            self._close_connection()
            raise write_failure(error, self.path) from error
        except ArtefactError as error:
            raise damaged_log(self.path, error) from error
        finally:
            if self._connection is not None and self._connection.in_transaction:
                self._close_connection()

    def _close_connection(self) -> None:
        """Closes the connection and rolls its transaction back; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _open_for_writing(self) -> tuple[sqlite3.Connection, State]:
        """Returns the connection and the state of the log; opens or creates what is missing."""
        if self._closed:
            raise NotWritableError(f"{self.path} was closed: the node is shutting down")
        if self._state is None:
            self._create_log()
        assert self._state is not None
        if self._acknowledged is None:
            last = AcknowledgedWrite(self._state.last, self._state.link)
            self._acknowledged = AcknowledgedFile(self.path.with_name(ACKNOWLEDGED_FILE), last)
        if self._connection is None:
            self._opened_file = self.path.stat()
            self._connection = connect(self.path, overwrites=self.overwrites)
        return self._connection, self._state

    def _create_log(self) -> None:
        """Creates the log; locks its directory first unless it is locked already."""
        self.path.parent.mkdir(exist_ok=True)
        sync_directory(self.path.parent.parent)
        try:
            path = self.path.with_name(LOCK_FILE)
            self._directory_lock = self._directory_lock or DirectoryLock(path)
        except ArtefactError as error:
            raise NotWritableError(str(error)) from error
        self._state, self._trimmed = create_log(
            self.path, self._new_id or uuid4().hex, journal_position=self._new_position
        )

    def _is_same_file(self) -> bool:
        """Whether the path still names the opened file: SQLite would write to a deleted file."""
        try:
            opened = self._opened_file
            return opened is not None and os.path.samestat(opened, self.path.stat())
        except FileNotFoundError:
            return False

    def _replaced_error(self) -> NotWritableError:
        return NotWritableError(
            f"{self.path} was replaced, deleted, or written to by another process: restart the node"
        )
