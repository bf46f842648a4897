"""Reads and writes the assignment of an index: a small file at a path or fsspec URL.

A lock excludes other writers of a local file. At a URL, the last of two concurrent writers wins.
Nodes follow the current file, even if its version is lower than before.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from winnow.domain.assignment import Assignment
from winnow.errors import ArtefactError, InvalidRequestError, UnavailableError
from winnow.quoting import shown
from winnow.storage import open_storage

_FORMATS = (1, 2)
"""Supported formats. Format 2 marks split shards; versions that cannot split refuse it."""


class AssignmentFile:
    """The file of an assignment. All methods block on files or on the network."""

    def __init__(self, url: str) -> None:
        """`url`: path or URL of the file, such as s3://bucket/my-index/assignment.json.

        Raises UnavailableError if fsspec does not support the URL, or lacks the package for it.
        """
        folder, slash, self._name = url.rpartition("/")
        self.url = shown(url)
        self._storage = open_storage(folder or slash or ".", "assignments")

    def read(self) -> Assignment | None:
        """Reads the assignment; returns None if there is none yet.

        Raises ArtefactError if the file is damaged, and UnavailableError if it cannot be reached.
        """
        content = self._storage.read(self._name)
        return None if content is None else _decode(content, self.url)

    def change(self, change: Callable[[Assignment | None], Assignment]) -> Assignment:
        """Applies `change` to the current assignment, writes the result, and returns it.

        Raises UnavailableError if another writer changed the file at the same time. Raises the
        errors of `read` and `change`; then nothing is written.
        """
        with self._storage.locked():
            changed = change(self.read())
            self._storage.write(self._name, _encode(changed))
            if self.read() != changed:
                raise UnavailableError(
                    f"{self.url} was changed by another writer at the same time: run this again"
                )
        return changed


def _encode(assignment: Assignment) -> bytes:
    content = {
        "format": 2 if assignment.is_split else 1,
        "index_id": assignment.index_id,
        "shards": assignment.shards,
        "version": assignment.version,
        "nodes": dict(assignment.nodes),
        "holders": {str(shard): names for shard, names in sorted(assignment.holders.items())},
    }
    return json.dumps({**content, "checksum": _checksum(content)}, indent=1).encode() + b"\n"


def _decode(data: bytes, url: str) -> Assignment:
    try:
        content = json.loads(data)
        checksum = content.pop("checksum")
        if checksum != _checksum(content):
            raise ArtefactError("its checksum does not match")
        if content["format"] not in _FORMATS:
            raise ArtefactError(
                f"it has format {content['format']}, but this version reads formats 1 and 2"
            )
        return Assignment(
            index_id=content["index_id"],
            shards=content["shards"],
            version=content["version"],
            nodes=content["nodes"],
            holders={int(shard): tuple(names) for shard, names in content["holders"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"{url} is damaged: {error!r}: restore or delete it") from error
    except (ArtefactError, InvalidRequestError) as error:
        raise ArtefactError(f"{url} is damaged: {error}: restore or delete it") from error


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
