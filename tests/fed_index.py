"""A copy of an index that takes writes, and its expected contents."""

import contextlib
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from live_writes import encoded

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.merging.merge import merge
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.shard import shard_name, shard_of
from winnow.domain.write import EncodedPassage

Held = dict[str, tuple[str, int | None]]
"""Text and version of each passage, by id."""


class FedIndex:
    """Writes to the logs of all shards, as nodes do; holds their locks until it is closed."""

    def __init__(self, source: Path, index: Path) -> None:
        self.index = Path(shutil.copytree(source, index))
        self.manifest = read_index_manifest(index)
        self.shards = shards_of(index)
        self.logs = [open_log(shard) for shard in self.shards]
        self.held = held(index)
        self.tombstones: dict[str, int] = {}
        self._words = {name: words for shard in self.shards for name, words in _words(shard)}

    def put(self, identifier: str, text: str, version: int | None = None) -> None:
        """Writes a passage to its shard."""
        chance = np.random.default_rng(list(text.encode()))
        vector = chance.standard_normal(self.manifest.dimension).astype("<f4")
        vector /= np.linalg.norm(vector)
        self._append(
            identifier, version, replace(encoded(identifier, text), vector=vector.tobytes())
        )
        self.held[identifier] = text, version

    def delete(self, identifier: str, version: int | None = None) -> None:
        """Deletes a stored passage; with a version, also one that is not stored."""
        self._append(identifier, version, None)
        self.held.pop(identifier, None)
        if version is not None:
            self.tombstones[identifier] = version

    def merge(self, shard: int) -> Path:
        """Merges all writes of a shard into a new generation, and trims the log."""
        directory, log = self.shards[shard], self.logs[shard]
        done = merge(read_current_shard(directory).base, directory, log.last)
        log.trim(log.last)
        return Path(done.directory)

    def close(self) -> None:
        """Closes the logs, as stopping nodes do."""
        for log in self.logs:
            log.close()

    def _append(self, identifier: str, version: int | None, put: EncodedPassage | None) -> None:
        log = self.logs[shard_of(identifier, self.manifest.shards)]
        removed = self._words.pop(identifier, None)
        log.append(
            [
                LoggedWrite(
                    sequence=log.last + 1,
                    id=identifier,
                    version=version,
                    put=put,
                    removed_words=removed,
                )
            ]
        )
        log.acknowledge()
        self.tombstones.pop(identifier, None)
        if put is not None:
            self._words[identifier] = put.words


def shards_of(index: Path) -> list[Path]:
    """Returns the directories of an index's shards."""
    shards = read_index_manifest(index).shards
    return [index / shard_name(shard, shards) for shard in range(shards)]


def held(index: Path) -> Held:
    """Returns the passages with which the shards of an index were built."""
    rows = (
        row for shard in shards_of(index) for row in _rows(shard, "passages", "id, text, version")
    )
    return {name: (text, version) for name, text, version in rows}


def tombstones(index: Path) -> dict[str, int]:
    """Returns the versions of deletions by id; fails if one is in another shard than its id's."""
    found = {}
    for number, shard in enumerate(shards := shards_of(index)):
        for name, version in _rows(shard, "tombstones", "id, version"):
            assert shard_of(name, len(shards)) == number
            found[name] = version
    return found


def _words(shard: Path) -> list[tuple[str, bytes]]:
    rows = _rows(shard, "passages", "id, title_tokens, text_tokens")
    return [(name, title + text) for name, title, text in rows]


def _rows(shard: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(shard / "passages.sqlite")) as connection:
        return connection.execute(f"SELECT {columns} FROM {table}").fetchall()
