"""The durable log of a shard: every write after its base.

SQLite in WAL mode, with every commit synced. The first write makes it: a shard that is never
written to stays as it is. One process writes, any number read (`content_node.live.reading`).
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged, AcknowledgedFile
from winnow.content_node.live.database import connect, cut_wal, make_log, move_pages
from winnow.content_node.live.entry import Logged, link
from winnow.content_node.live.failures import failure
from winnow.content_node.live.locks import LOCK, AlternatingLock, DirectoryLock
from winnow.content_node.live.reading import entries
from winnow.content_node.live.schema import (
    INSERT,
    State,
    Trimmed,
    get_state,
    get_trimmed,
    link_at,
    put_state,
    put_trimmed,
    row_of,
    take_back,
)
from winnow.content_node.live.word_counts import WordTally
from winnow.errors import ArtefactError, NotWritableError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory

_TRIMMED_AT_ONCE = 256
"""Writes that are trimmed in one transaction: a commit waits no longer than that takes."""


class WriteLog:
    """The writes to one shard. One thread appends, and the same or another one trims.

    Methods that write raise `OverloadedError` if there is no room or the disk fails, and
    `NotWritableError` if nothing can be written; nothing was stored then.
    """

    def __init__(
        self,
        path: Path,
        lock: DirectoryLock | None = None,
        found: tuple[State, Trimmed] | None = None,
        log_id: str = "",
    ) -> None:
        """`open_log` makes it, and checks the files.

        `found` is the position of the log, None if there is no log yet. A new log is called
        `log_id`, or gets a random name.
        """
        self.path = path
        self._lock = lock
        self._state: State | None = None
        self._trimmed: Trimmed | None = None
        if found is not None:
            self._state, self._trimmed = found
        self._new_id = log_id
        self._unsure: set[State] = set()
        """Other possible positions of the log: a failed commit may have reached the disk."""
        self._connection: sqlite3.Connection | None = None
        self._file: AcknowledgedFile | None = None
        self._turn = AlternatingLock()
        self._closed = False
        self._named: os.stat_result | None = None
        """The file that the connection writes to."""

    @property
    def log_id(self) -> str:
        return self._state.log_id if self._state else ""

    @property
    def last(self) -> int:
        """The number of the last write; 0 if there was none."""
        return self._state.last if self._state else 0

    @property
    def place(self) -> str:
        """The place up to which the journal was read; empty if the log follows none."""
        return self._state.place if self._state else ""

    @property
    def trimmed(self) -> int:
        """The number of the last write that was trimmed."""
        return self._trimmed.last if self._trimmed else 0

    @property
    def trimmed_words(self) -> WordTally:
        """The changes of word counts by the trimmed writes."""
        return self._trimmed.words if self._trimmed else WordTally()

    def append(self, writes: Sequence[Logged], place: str | None = None, log_id: str = "") -> None:
        """Stores writes, which continue the log, in one transaction; returns when it is durable.

        `place`, the place up to which the journal was read, is stored with them; None leaves it as
        it is. A log that has to be made is called `log_id`, if it is given.
        """
        self._new_id = log_id or self._new_id
        with self._turn, self._transaction() as (connection, state):
            head = state.link
            rows = []
            for sequence, write in enumerate(writes, state.last + 1):
                if write.sequence != sequence:
                    raise ValueError(f"write {write.sequence} does not follow {sequence - 1}")
                head = link(head, write)
                rows.append(row_of(write, head))
            connection.executemany(INSERT, rows)
            now = replace(state, last=state.last + len(rows), link=head)
            now = now if place is None else replace(now, place=place)
            put_state(connection, now)
            reach("log.inserted")
            self._unsure.add(now)
            connection.execute("COMMIT")
            self._state = now
            self._unsure.clear()
        reach("log.committed")

    def acknowledge(self) -> None:
        """Notes that everything that was appended is acknowledged, before callers get results.

        If it cannot be noted, the writes are stored and may be served, and callers get an error.
        """
        if self._state is None or self._file is None:
            return
        try:
            self._file.write(Acknowledged(self._state.last, self._state.link))
        except OSError as error:
            raise failure(error, self._beside(ACKNOWLEDGED)) from error
        reach("log.acknowledged")

    def after(self, sequence: int, up_to: int | None = None) -> Iterator[Logged]:
        """The writes after `sequence` up to `up_to`; raises ArtefactError if they are missing."""
        return entries(self.path, sequence, up_to) if self._state else iter(())

    def trim(self, up_to: int) -> None:
        """Removes the writes up to `up_to`, which a base holds. Appending goes on in between.

        It also empties SQLite's write-ahead log, even if there was nothing to remove: that file
        grows with every write, and merges do not shrink it.
        """
        self._give_back_room()  # removing a write takes some room, too
        while self.trimmed < min(up_to, self.last):
            with self._turn, self._transaction() as (connection, _):
                trimmed = self._trim_some(connection, up_to)
                connection.execute("COMMIT")
                self._trimmed = trimmed
        self._give_back_room()

    def close(self) -> None:
        """Releases the directory. Nothing can be appended any more."""
        with self._turn:
            self._closed = True
            self._close_connection()
            if self._file is not None:
                self._file.close()
            if self._lock is not None:
                self._lock.release()

    def _give_back_room(self) -> None:
        if self._state is None:
            return
        with self._turn:
            if self._connection is not None and not self._is_named():
                raise self._replaced()
        try:
            move_pages(self.path)
            with self._turn:
                if not self._closed:
                    cut_wal(self.path)
        except (sqlite3.Error, OSError) as error:
            raise failure(error, self.path) from error

    def _trim_some(self, connection: sqlite3.Connection, up_to: int) -> Trimmed:
        before = get_trimmed(connection)  # a commit that failed may have reached the disk
        last = max(min(up_to, self.last, before.last + _TRIMMED_AT_ONCE), before.last)
        words = before.words.copy()
        words.count(entries(self.path, before.last, last))
        trimmed = Trimmed(last, link_at(connection, last), words)
        connection.execute("DELETE FROM writes WHERE sequence <= ?", (last,))
        put_trimmed(connection, trimmed)
        return trimmed

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """A transaction, which the caller commits."""
        try:
            connection, state = self._writable()
            connection.execute("BEGIN IMMEDIATE")
            reach("log.begun")
            found = get_state(connection)
            if found not in {state, *self._unsure} or not self._is_named():
                raise self._replaced()
            self._unsure &= {found}
            if found != state:
                take_back(connection, state)  # no caller got a result
            yield connection, state
        except (sqlite3.Error, OSError) as error:
            self._close_connection()
            raise failure(error, self.path) from error
        except ArtefactError as error:
            raise NotWritableError(
                f"{self.path} is damaged ({error}): start the node again, which says what to do"
            ) from error
        finally:
            if self._connection is not None and self._connection.in_transaction:
                self._close_connection()

    def _close_connection(self) -> None:
        """Rolls back; the next connection begins with the state on the disk."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _writable(self) -> tuple[sqlite3.Connection, State]:
        """The connection and the position of the log, which are made when they are first needed."""
        if self._closed:
            raise NotWritableError(f"{self.path} was closed: the node is ending")
        if self._state is None:
            self._make()
        assert self._state is not None
        if self._file is None:
            now = Acknowledged(self._state.last, self._state.link)
            self._file = AcknowledgedFile(self._beside(ACKNOWLEDGED), now)
        if self._connection is None:
            self._named = self.path.stat()
            self._connection = connect(self.path)
        return self._connection, self._state

    def _make(self) -> None:
        """Makes the log, and takes its lock if it is not held yet."""
        self.path.parent.mkdir(exist_ok=True)
        sync_directory(self.path.parent.parent)
        self._lock = self._lock or _held(self._beside(LOCK))
        self._state, self._trimmed = make_log(self.path, self._new_id or uuid4().hex)

    def _is_named(self) -> bool:
        """Whether the database still has its name: SQLite would go on writing to a deleted file."""
        try:
            return self._named is not None and os.path.samestat(self._named, self.path.stat())
        except FileNotFoundError:
            return False

    def _replaced(self) -> NotWritableError:
        return NotWritableError(
            f"{self.path} was replaced, deleted, or written to by another process: start the node "
            "again"
        )

    def _beside(self, name: str) -> Path:
        return self.path.with_name(name)


def _held(path: Path) -> DirectoryLock:
    try:
        return DirectoryLock(path)
    except ArtefactError as error:
        raise NotWritableError(str(error)) from error
