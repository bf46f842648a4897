"""Disks that forget what was not synced, below the calls that write.

A disk is a directory. `os.fsync` and commits of SQLite record what is durable: the content of a
file, and the names in a directory. After a kill, everything that was written is there. After a
power loss, only what is durable is certain; each other change is there or not, at random.

SQLite syncs by itself, in C. A commit with `synchronous = FULL` or a checkpoint counts as a sync of
the database and of its write-ahead log.
"""

import errno
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from simulation import fault_points
from simulation.fault_points import SYNC_POINT
from simulation.process import current_process

_real_connect = sqlite3.connect
_real_pwrite = os.pwrite
_FULL_SYNC = 2
_COPIED_BYTES = 1 << 30
Names = dict[str, int]
"""Inodes by name."""


@dataclass(slots=True)
class Disk:
    """The disk of one node."""

    root: Path
    rng: Random
    tracks_syncs: bool = True
    """Whether it records what is durable, which a power loss needs."""
    contents: dict[int, bytes] = field(default_factory=dict)
    """The durable content of each file, by inode."""
    names: dict[int, Names] = field(default_factory=dict)
    """The durable names in each directory, by its inode: a renamed directory keeps them."""
    restarts: int = 0
    syncs: int = 0
    prefix: str = ""
    """What the paths of its files begin with."""

    def __post_init__(self) -> None:
        self.prefix = f"{self.root}/"

    def sync_all(self) -> None:
        """Makes everything durable."""
        for directory, _, files in os.walk(self.root):
            self._sync_directory(Path(directory))
            for name in files:
                self._sync_file(Path(directory, name))

    def sync(self, path: Path) -> None:
        """Makes a file, or the names in a directory, durable."""
        fault_points.reach(SYNC_POINT)
        self.syncs += 1
        if not self.tracks_syncs:
            return
        if path.is_dir():
            self._sync_directory(path)
        else:
            self._sync_file(path)

    def sync_database(self, path: Path) -> None:
        """Makes a database and its write-ahead log durable, with the name of the log."""
        fault_points.reach(SYNC_POINT)
        self.syncs += 1
        if not self.tracks_syncs:
            return
        log = path.with_name(f"{path.name}-wal")
        for each in (path, log):
            if each.exists():
                self._sync_file(each)
        names = self.names.setdefault(path.parent.stat().st_ino, {})
        if log.exists():
            names[log.name] = log.stat().st_ino

    def restart(self, *, power_loss: bool) -> Path:
        """Returns a new root with what a restarted machine finds; the old one is abandoned.

        The killed process still has files of the old one open.
        """
        self.restarts += 1
        old, new = self.root, self.root.with_name(f"{self.root.name.split('~')[0]}~{self.restarts}")
        if power_loss:
            self._restore(old, new)
        else:
            copy_tree(old, new)
        self.root, self.prefix = new, f"{new}/"
        self.contents.clear()
        self.names.clear()
        if self.tracks_syncs:
            self.sync_all()
        return new

    def _sync_directory(self, path: Path) -> None:
        with os.scandir(path) as found:
            entries = list(found)
        self.names[path.stat().st_ino] = {each.name: each.inode() for each in entries}
        for each in entries:
            if each.is_dir(follow_symlinks=False):
                self.names.setdefault(each.inode(), {})

    def _sync_file(self, path: Path) -> None:
        self.contents[path.stat().st_ino] = path.read_bytes()

    def _restore(self, old: Path, new: Path) -> None:
        new.mkdir()
        names = dict(self.names.get(old.stat().st_ino, {}))
        current = {each.name: each.stat().st_ino for each in sorted(old.iterdir())}
        for name in sorted({*names, *current}):
            if names.get(name) != current.get(name) and self.rng.random() < 1 / 2:
                names = {**names, name: current[name]} if name in current else _without(names, name)
        present = {inode: name for name, inode in current.items()}
        for name, inode in sorted(names.items()):
            source = old / present.get(inode, name)
            if source.is_dir() and source.stat().st_ino == inode:
                self._restore(source, new / name)
            elif inode in self.names:
                self._restore_removed(inode, new / name)
            else:
                (new / name).write_bytes(self._survivor(source, inode))

    def _restore_removed(self, directory: int, new: Path) -> None:
        """Restores a directory that was removed, but whose removal was lost."""
        new.mkdir()
        for name, inode in sorted(self.names[directory].items()):
            if inode in self.names:
                self._restore_removed(inode, new / name)
            else:
                (new / name).write_bytes(self.contents.get(inode, b""))

    def _survivor(self, source: Path, inode: int) -> bytes:
        """Returns the content of a file after a power loss."""
        durable = self.contents.get(inode, b"")
        exists = source.is_file() and source.stat().st_ino == inode
        written = source.read_bytes() if exists else durable
        if written == durable:
            return durable
        choice = self.rng.random()
        if choice < 1 / 2:
            return durable
        if written.startswith(durable):  # an appended part may be there in part
            return written[: self.rng.randint(len(durable), len(written))]
        return written


def copy_tree(source: Path, target: Path) -> None:
    """Copies a directory, without the times and permissions of its files, which nothing uses."""
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir():
                copy_tree(source / entry.name, target / entry.name)
            else:
                _copy_file(entry.path, f"{target}/{entry.name}")


def _copy_file(source: str, target: str) -> None:
    one = os.open(source, os.O_RDONLY)
    try:
        other = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            while os.sendfile(other, one, None, _COPIED_BYTES):
                pass
        finally:
            os.close(other)
    finally:
        os.close(one)


def _without(names: Names, name: str) -> Names:
    return {each: inode for each, inode in names.items() if each != name}


class Disks:
    """The disks of all nodes; finds the disk of a path."""

    def __init__(self) -> None:
        self.all: list[Disk] = []

    @property
    def track_syncs(self) -> bool:
        """Whether any disk records what is durable."""
        return any(each.tracks_syncs for each in self.all)

    def of(self, path: Path) -> Disk | None:
        name = f"{path}/"
        return next((each for each in self.all if name.startswith(each.prefix)), None)


DISKS = Disks()
"""The disks of the running simulation."""


def _fsync(descriptor: int) -> None:
    path = Path(f"/proc/self/fd/{descriptor}").readlink()
    disk = DISKS.of(path)
    if disk is None:
        return  # what tests and clients write needs no sync
    if current_process().full_disk and not path.is_dir():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    disk.sync(path)


def _pwrite(descriptor: int, data: bytes, offset: int) -> int:
    if current_process().full_disk:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return _real_pwrite(descriptor, data, offset)


class TrackedConnection(sqlite3.Connection):
    """A connection that reports its syncs, and fails while the disk is full."""

    path: Path | None = None
    is_synced: bool = False
    """Whether commits are durable when they return."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        is_commit = sql == "COMMIT"
        if is_commit and current_process().full_disk:
            if self._commits_before_failing():
                super().execute(sql, parameters)
                self._report()
            raise full_error()
        cursor = super().execute(sql, parameters)
        if sql.startswith("PRAGMA synchronous"):
            ((level,),) = super().execute("PRAGMA synchronous").fetchall()
            self.is_synced = level >= _FULL_SYNC
            # syncs are only observed: the file system in memory needs none
            super().execute("PRAGMA synchronous = OFF")
        elif is_commit or sql.startswith("PRAGMA wal_checkpoint"):
            self._report()
        return cursor

    def commit(self) -> None:
        super().commit()
        self._report()

    def close(self) -> None:
        self._report()  # closing the last connection checkpoints, with syncs
        super().close()
        if self.path is not None and self.path.exists() and (disk := DISKS.of(self.path)):
            disk.sync_database(self.path)

    def _commits_before_failing(self) -> bool:
        """Whether a commit that fails has reached the disk, as after a failed sync."""
        disk = DISKS.of(self._file())
        return disk is not None and disk.rng.random() < 1 / 2

    def _file(self) -> Path:
        if self.path is None:
            ((_, _, name), *_) = super().execute("PRAGMA database_list").fetchall()
            self.path = Path(name)
        return self.path

    def _report(self) -> None:
        """Reports a sync of the database, if commits are synced."""
        if not self.is_synced or not DISKS.track_syncs:
            return
        path = self._file()
        disk = DISKS.of(path)
        if disk is not None:
            disk.sync_database(path)


def full_error() -> sqlite3.OperationalError:
    """Returns SQLite's error for a full disk."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def _connect(*args: Any, **options: Any) -> sqlite3.Connection:
    options.setdefault("factory", TrackedConnection)
    connection: sqlite3.Connection = _real_connect(*args, **options)
    return connection


def install() -> None:
    """Replaces the calls that write durably."""
    os.fsync = _fsync  # type: ignore[assignment]
    os.pwrite = _pwrite  # type: ignore[assignment]
    sqlite3.connect = _connect  # type: ignore[assignment]
