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
    path = directory / LIVE / FOLDER_FILE
    status = directory.stat()
    here = [status.st_dev, status.st_ino]
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(path.read_bytes())
        if content["directory"] == here:
            return str(content["folder"])
    folder = f"{name}.{uuid4().hex}"
    if not path.parent.is_dir():
        path.parent.mkdir()
        sync_directory(directory)
    write_durably(path, json.dumps({"folder": folder, "directory": here}).encode())
    return folder
