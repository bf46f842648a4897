"""The folder of a shard's copy in the archive, which a small file beside the log names.

Each copy of a shard has its own folder, since archiving removes what the folder had before. A copy
made by the system, such as `cp -r`, has the file, too. So the file also names its directory.
"""

import json
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from winnow.content_node.merging.names import LIVE
from winnow.files.durable import sync_directory, write_durably

FOLDER_FILE = "archive.json"
"""Name of the file in the directory of the log."""


def folder_of(directory: Path, name: str) -> str:
    """Returns the folder of the shard in this directory; chooses one at the first call.

    `name` is the name of the shard. Raises OSError if the choice cannot be recorded.
    """
    if recorded := recorded_folder(directory):
        return recorded
    path, here = directory / LIVE / FOLDER_FILE, _identity(directory)
    folder = f"{name}.{uuid4().hex}"
    if not path.parent.is_dir():
        path.parent.mkdir()
        sync_directory(directory)
    write_durably(path, json.dumps({"folder": folder, "directory": here}).encode())
    return folder


def recorded_folder(directory: Path) -> str:
    """Returns the folder of the shard in this directory; empty if it was never archived."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads((directory / LIVE / FOLDER_FILE).read_bytes())
        if content["directory"] == _identity(directory):
            return str(content["folder"])
    return ""


def _identity(directory: Path) -> list[int]:
    """Device and inode of a directory. A copy of the directory has others."""
    status = directory.stat()
    return [status.st_dev, status.st_ino]
