"""The last acknowledged write of a log, in a tiny file beside the log.

SQLite treats a damaged end of its write-ahead log like an unfinished commit. This file is written
after every commit, before callers get their results. It shows whether acknowledged writes are
missing.
"""

import hashlib
import os
import struct
import weakref
from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.log_entry import LINK_BYTES
from winnow.errors import ArtefactError
from winnow.files.durable import write_durably

ACKNOWLEDGED_FILE = "acknowledged"
_RECORD = struct.Struct(f"<8sQ{LINK_BYTES}s")
_MAGIC = b"winnow-1"
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class AcknowledgedWrite:
    """The last write whose result was sent to a caller."""

    sequence: int
    link: bytes
    """The checksum of this write and of all writes before it; see `entry.next_link`."""


def read_acknowledged(path: Path) -> AcknowledgedWrite | None:
    """Reads the last acknowledged write; returns None if there is no file.

    Raises:
        ArtefactError: the file is damaged, or cannot be read.

    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
    content, digest = data[: _RECORD.size], data[_RECORD.size :]
    if len(content) != _RECORD.size or _digest(content) != digest:
        raise ArtefactError(
            f"{path} is damaged: copy the shard again; or delete the file, then the log is "
            "accepted even if its end is missing"
        )
    _, sequence, link = _RECORD.unpack(content)
    return AcknowledgedWrite(sequence, link)


class AcknowledgedFile:
    """Overwrites the file after each commit. Used by one thread."""

    def __init__(self, path: Path, last: AcknowledgedWrite) -> None:
        """Creates the file with `last`; raises OSError if the file cannot be written."""
        write_durably(path, _pack_write(last))
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self.close = weakref.finalize(self, os.close, self._descriptor)

    def write(self, last: AcknowledgedWrite) -> None:
        """Records that writes up to `last` are acknowledged; raises OSError on failure.

        The file is not synced: after a power loss it may name an earlier write, never a later one.
        It fits into one sector, so it is never written in part.
        """
        data = _pack_write(last)
        if os.pwrite(self._descriptor, data, 0) != len(data):
            raise OSError("the acknowledgement was written only in part")


def _pack_write(last: AcknowledgedWrite) -> bytes:
    content = _RECORD.pack(_MAGIC, last.sequence, last.link)
    return content + _digest(content)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
