"""The folder of a shard's copy in the archive, which a small file beside the log names.

Each copy of a shard has its own folder, since archiving removes what the folder had before. A copy
made by the system, such as `cp -r`, has the file, too. So the file also names its directory.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import structlog

from winnow.content_node.live.locks import LOCK_FILE
from winnow.content_node.merging.names import LIVE
from winnow.files.durable import sync_directory, write_durably
from winnow.quoting import shown

_log = structlog.get_logger("content_node")
FOLDER_FILE = "archive.json"
"""Name of the file in the directory of the log."""


@dataclass(frozen=True, slots=True)
class ArchiveFolder:
    """The folder of a shard in an archive, where the shard has or had a copy."""

    name: str
    """Name of the folder, below the id of the index."""
    index_id: str
    archive: str
    """Directory or URL of the archive, without a password."""
    merged: int
    """Number of the last write in the merged files of the shard when it was copied."""


def folder_of(directory: Path, shard: str, index_id: str, archive: str, merged: int) -> str:
    """Returns the folder of the shard in this directory; chooses one at the first call.

    `shard` is the name of the shard. The other arguments are recorded. Raises OSError if the file
    cannot be read or written.
    """
    before = recorded_folder(directory)
    name = before.name if before is not None else f"{shard}.{uuid4().hex}"
    folder = ArchiveFolder(name, index_id, shown(archive), merged)
    if folder == before:
        return name
    path = _path(directory)
    if before is None and path.exists():
        _log.warning("a copied shard gets another folder of the archive", directory=str(directory))
    if not path.parent.is_dir():
        path.parent.mkdir()
        sync_directory(directory)
    if not (lock := path.with_name(LOCK_FILE)).exists():
        lock.touch()  # its age tells the directory from a copy
    content = {
        "folder": folder.name,
        "index_id": folder.index_id,
        "archive": folder.archive,
        "merged": folder.merged,
        "directory": _identity(directory),
    }
    write_durably(path, json.dumps(content).encode())
    return name


def recorded_folder(directory: Path) -> ArchiveFolder | None:
    """Returns the folder of the shard in this directory; None if the shard has none.

    A damaged file counts as missing. Raises OSError if the file cannot be read.
    """
    try:
        content = json.loads(_path(directory).read_bytes())
        folder = ArchiveFolder(
            str(content["folder"]),
            str(content["index_id"]),
            str(content["archive"]),
            int(content["merged"]),
        )
        is_own = content["directory"] == _identity(directory)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return folder if is_own else None


def forget_folder(directory: Path) -> None:
    """Forgets the folder of a shard, which has no files any more.

    Raises OSError if the file cannot be removed.
    """
    _path(directory).unlink(missing_ok=True)


def _path(directory: Path) -> Path:
    return directory / LIVE / FOLDER_FILE


def _identity(directory: Path) -> list[int]:
    """Returns what a copy of a directory has otherwise: two inodes, and the age of the lock file.

    The device has another number after some restarts of the machine, so it does not count.
    """
    live = directory / LIVE
    age = (live / LOCK_FILE).stat().st_mtime_ns
    return [directory.stat().st_ino, live.stat().st_ino, age]
