"""The durable log of a shard: every write since its base.

SQLite in WAL mode, every commit synced. Made by the first write: a shard that is never written to
stays as it is. One process writes, any number read (`content_node.live.reading`).
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from winnow.content_node.live.acknowledged import ACKNOWLEDGED, Acknowledged, AcknowledgedFile
from winnow.content_node.live.alternating_lock import AlternatingLock
from winnow.content_node.live.checkpoint import cut_wal, move_pages
from winnow.content_node.live.entry import Logged, link
from winnow.content_node.live.failures import failure
from winnow.content_node.live.lock import LOCK, DirectoryLock
from winnow.content_node.live.making import connect, make_log
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
from winnow.content_node.live.tally import WordTally
from winnow.errors import ArtefactError, NotWritableError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory

_TRIMMED_AT_ONCE = 256
"""Writes: a commit waits no longer than that takes."""


class WriteLog:
    """What was written to one shard. Appended to by one thread, trimmed by another one or the same.

    All that writes raises `OverloadedError` when there is no room or the disk fails, and
    `NotWritableError` where nothing can be written; nothing was stored then.
    """

    def __init__(
        self,
        path: Path,
        lock: DirectoryLock | None = None,
        found: tuple[State, Trimmed] | None = None,
        log_id: str = "",
    ) -> None:
        """To be had from `open_log`, which checks what is there.

        `found` is where the log stands, None if there is none yet: then it will be called `log_id`,
        or by a name of its own.
        """
        self.path = path
        self._lock = lock
        self._state: State | None = None
        self._trimmed: Trimmed | None = None
        if found is not None:
            self._state, self._trimmed = found
        self._new_id = log_id
        self._unsure: set[State] = set()
        """Where the log may stand, too: a commit that failed may have reached the disk."""
        self._connection: sqlite3.Connection | None = None
        self._file: AcknowledgedFile | None = None
        self._turn = AlternatingLock()
        self._closed = False
        self._named: os.stat_result | None = None
        """The file that the connection writes to."""

    @property
    def log_id(self) -> str:
        """Names the log; empty before the first write."""
        return self._state.log_id if self._state else ""

    @property
    def last(self) -> int:
        """The sequence number of the last write; 0 if there was none."""
        return self._state.last if self._state else 0

    @property
    def place(self) -> str:
        """How far the log that this one follows was read; empty if it follows none."""
        return self._state.place if self._state else ""

    @property
    def trimmed(self) -> int:
        """The last write that is not there any more."""
        return self._trimmed.last if self._trimmed else 0

    @property
    def trimmed_words(self) -> WordTally:
        """What the writes changed that are not there any more."""
        return self._trimmed.words if self._trimmed else WordTally()

    def append(self, writes: Sequence[Logged], place: str | None = None, log_id: str = "") -> None:
        """Stores writes, which continue the log, in one transaction; returns when it is durable.

        `place` in the log that this one follows is stored with them; None leaves it as it is. A log
        that has to be made is called `log_id`, if it is given.
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
        """Notes that callers are told of everything that was appended.

        If it cannot be noted the writes are there, and may be served; callers are not to be told.
        """
        if self._state is None or self._file is None:
            return
        try:
            self._file.write(Acknowledged(self._state.last, self._state.link))
        except OSError as error:
            raise failure(error, self._beside(ACKNOWLEDGED)) from error
        reach("log.acknowledged")

    def after(self, sequence: int, up_to: int | None = None) -> Iterator[Logged]:
        """The writes after one, up to another; raises ArtefactError if they are not there."""
        return entries(self.path, sequence, up_to) if self._state else iter(())

    def trim(self, up_to: int) -> None:
        """Forgets the writes up to one, which a base holds. Others are appended in between.

        Then it gives back the room of SQLite's write-ahead log, also where there was nothing to
        forget: that log grows with every write, and no merge is in it.
        """
        self._give_back_room()  # to forget a write takes some room, too
        while self.trimmed < min(up_to, self.last):
            with self._turn, self._transaction() as (connection, _):
                trimmed = self._trim_some(connection, up_to)
                connection.execute("COMMIT")
                self._trimmed = trimmed
        self._give_back_room()

    def close(self) -> None:
        """Lets go of the directory. Nothing is to be appended any more."""
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
        words.count_all(entries(self.path, before.last, last))
        trimmed = Trimmed(last, link_at(connection, last), words)
        connection.execute("DELETE FROM writes WHERE sequence <= ?", (last,))
        put_trimmed(connection, trimmed)
        return trimmed

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """A transaction, which whoever is in it commits."""
        try:
            connection, state = self._writable()
            connection.execute("BEGIN IMMEDIATE")
            reach("log.begun")
            found = get_state(connection)
            if found not in {state, *self._unsure} or not self._is_named():
                raise self._replaced()
            self._unsure &= {found}
            if found != state:
                take_back(connection, state)  # nobody was told
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
        """Takes back what was not committed; the next one begins from what is on the disk."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _writable(self) -> tuple[sqlite3.Connection, State]:
        """The connection, and where the log stands; made when they are needed first."""
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
        """Makes the log, and takes its lock, if it is not there yet."""
        self.path.parent.mkdir(exist_ok=True)
        sync_directory(self.path.parent.parent)
        self._lock = self._lock or _held(self._beside(LOCK))
        self._state, self._trimmed = make_log(self.path, self._new_id or uuid4().hex)

    def _is_named(self) -> bool:
        """Whether the name of the database still leads to what is written to: SQLite would go on
        writing to a file that was deleted.
        """
        try:
            return self._named is not None and os.path.samestat(self._named, self.path.stat())
        except FileNotFoundError:
            return False

    def _replaced(self) -> NotWritableError:
        return NotWritableError(
            f"{self.path} was replaced, deleted, or written to by somebody else: start the node "
            "again"
        )

    def _beside(self, name: str) -> Path:
        return self.path.with_name(name)


def _held(path: Path) -> DirectoryLock:
    try:
        return DirectoryLock(path)
    except ArtefactError as error:
        raise NotWritableError(str(error)) from error
