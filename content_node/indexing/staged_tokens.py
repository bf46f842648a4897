"""Writes the token vectors of a build beside its shards.

They are those that the encoder computed together with the vectors. Missing ones are computed.
"""

import contextlib
import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import Any

from winnow.bundle import Bundle
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.states.index import STAGE, open_states_model
from winnow.content_node.states.writing import StatesWriter
from winnow.domain.shard import shard_name
from winnow.inference.options import InferenceOptions
from winnow.reading.states_kind import CHECKSUM_BYTES, TOKEN_VECTORS, with_checksum

_LEVELS = "SELECT levels FROM token_vectors JOIN passages USING (seq) WHERE id = ?"
_SIZE = "SELECT length(levels) FROM token_vectors JOIN passages USING (seq) WHERE id = ?"


class StagedTokens:
    """The token vectors in the staging database of a build. Safe to use from several threads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Several threads may share `connection`."""
        self._connection, self._lock = connection, threading.Lock()

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the token vectors of a passage in the format on disk; empty without any."""
        levels = self._query(_LEVELS, identifier)
        return b"" if levels is None else with_checksum(levels)

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without token vectors."""
        size = self._query(_SIZE, identifier)
        return 0 if size is None else size + CHECKSUM_BYTES

    def _query(self, query: str, identifier: str) -> Any:
        with self._lock:
            row = self._connection.execute(query, (identifier,)).fetchone()
        return None if row is None else row[0]


def write_token_vectors(
    staging: Path, index: Path, shards: int, bundle: Bundle, progress: BuildListener, threads: int
) -> None:
    """Writes the token vectors of all shards of a new index.

    Raises:
        ArtefactError: the encoder cannot be opened, or a shard cannot be read.
        OSError: a file cannot be written.

    """
    model = open_states_model(TOKEN_VECTORS, bundle, InferenceOptions(runs=threads))
    with contextlib.closing(sqlite3.connect(staging, check_same_thread=False)) as connection:
        staged = StagedTokens(connection)
        for shard in range(shards):
            stage = STAGE.format(noun=TOKEN_VECTORS.noun, shard=shard)
            directory = index / shard_name(shard, shards)
            writer = StatesWriter(directory, model, [staged])
            writer.write(threads, partial(progress.start, stage), progress.advance)
            (directory / TOKEN_VECTORS.lock).unlink()  # no other process knows the directory
