"""The last acknowledged write of a log, in a tiny file beside it.

SQLite takes a damaged end of its write-ahead log for an unfinished one. This file is written after
every commit, before callers get their results, and tells the two apart.
"""

import hashlib
import os
import struct
import weakref
from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.live.entry import CHAIN
from winnow.errors import ArtefactError
from winnow.files.durable import write_durably

ACKNOWLEDGED = "acknowledged"
_CONTENT = struct.Struct(f"<8sQ{CHAIN}s")
_MAGIC = b"winnow-1"
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The last write whose result a caller got."""

    sequence: int
    link: bytes
    """The link of the chain at this write."""


def read(path: Path) -> Acknowledged | None:
    """The content of the file; None if there is no file.

    Raises:
        ArtefactError: the file is damaged, or cannot be read.

    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
    content, digest = data[: _CONTENT.size], data[_CONTENT.size :]
    if len(content) != _CONTENT.size or _digest(content) != digest:
        raise ArtefactError(
            f"{path} is damaged: copy the shard again; or delete the file, and the log is read "
            "as it is, even if its end is missing"
        )
    _, sequence, link = _CONTENT.unpack(content)
    return Acknowledged(sequence, link)


class AcknowledgedFile:
    """The file, open to be overwritten. Used by one thread."""

    def __init__(self, path: Path, first: Acknowledged) -> None:
        """Writes `first`; raises OSError if the file cannot be written."""
        write_durably(path, _packed(first))
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self.close = weakref.finalize(self, os.close, self._descriptor)

    def write(self, now: Acknowledged) -> None:
        """Notes that writes up to `now` are acknowledged; raises OSError if it cannot.

        Not synced: after a power loss the file may name an earlier write, never a later one. It
        lies in one sector, so it is never written in part.
        """
        data = _packed(now)
        if os.pwrite(self._descriptor, data, 0) != len(data):
            raise OSError("only a part of it was written")


def _packed(said: Acknowledged) -> bytes:
    content = _CONTENT.pack(_MAGIC, said.sequence, said.link)
    return content + _digest(content)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
