"""Restoring a snapshot, of an index or of one shard, into a new directory."""

import errno
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from winnow.content_node.shard.manifest import FileEntry
from winnow.content_node.snapshots.copying import MB, Progress, in_megabytes
from winnow.content_node.snapshots.finding import Found, find
from winnow.content_node.snapshots.place import FILES, Advance
from winnow.content_node.snapshots.renaming import rename_logs
from winnow.errors import ArtefactError
from winnow.files.aside import open_aside
from winnow.files.checksum import verify
from winnow.files.durable import sync_file

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def restore(url: str, target: Path, progress: Progress, name: str = "") -> Found:
    """Copies a snapshot into `target`, which appears once all is there and verified.

    `url` names a place, for the whole index, or a shard in it. What an interrupted restore has
    copied is used.

    Args:
        url: as `winnow index snapshot` was given it, or that and `/shard-00000-of-00003`.
        target: must not exist.
        progress: is told how it goes.
        name: of the snapshot; empty for the newest.

    Raises:
        NotFoundError: there is no such snapshot.
        ArtefactError: a file of it is damaged, or `target` exists or cannot be written.
        UnavailableError: the place cannot be reached, or another process restores `target`.

    """
    found = find(url, name)
    try:
        with open_aside(target) as aside:
            _Restoring(found, aside.content).get(progress)
            rename_logs(aside.content)
            aside.publish()
    except sqlite3.Error as error:
        raise ArtefactError(
            f"the log in {target.name}.partial cannot be written: {error}: make room, and run the "
            "same command again to go on"
        ) from error
    except OSError as error:
        advice = "make room, and" if error.errno in _FULL else "see that it can be written, and"
        raise ArtefactError(
            f"cannot write {error.filename or target}: {error.strerror or error}: {advice} run the "
            "same command again to go on"
        ) from error
    return found


class _Restoring:
    """Fills a directory with the files of a snapshot."""

    def __init__(self, found: Found, directory: Path) -> None:
        self._found, self._directory = found, directory

    def get(self, progress: Progress) -> None:
        files = self._found.files
        self._clear(files)
        missing = {path: entry for path, entry in files.items() if not self._has(path, entry)}
        total = sum(entry.bytes for entry in files.values())
        ahead = sum(entry.bytes for entry in missing.values())
        progress.start("copying, MB", total // MB, (total - ahead) // MB)
        advance = in_megabytes(progress.advance)
        for path, entry in missing.items():
            self._get(path, entry, advance)

    def _clear(self, files: Mapping[str, FileEntry]) -> None:
        """Removes what an interrupted restore of another snapshot has left."""
        for each in sorted(self._directory.rglob("*"), reverse=True):  # files before their folders
            if not each.is_dir():
                if each.relative_to(self._directory).as_posix() not in files:
                    each.unlink()
            elif not any(each.iterdir()):
                each.rmdir()

    def _has(self, path: str, entry: FileEntry) -> bool:
        """What was copied before is only used if it is good."""
        try:
            verify(self._directory / path, entry.sha256, entry.bytes)
        except ArtefactError:
            return False
        return True

    def _get(self, path: str, entry: FileEntry, advance: Advance) -> None:
        target = self._directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self._found.place.get(target, advance, FILES, entry.sha256)
        sync_file(target)
        try:
            verify(target, entry.sha256, entry.bytes)
        except ArtefactError as error:
            target.unlink()
            raise ArtefactError(
                f"{FILES}/{entry.sha256} at {self._found.place.name}, which is {path} of "
                f"snapshot {self._found.snapshot.name}, is damaged: remove it there, and take "
                "another snapshot"
            ) from error
