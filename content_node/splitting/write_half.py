"""Writes a half of a shard: its passages of the shard's base, and a log that begins after the base.

Rows are copied between databases; nothing is encoded again. The passages keep their order and the
numbers of their writes. Their rows are numbered from 0.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from winnow.content_node.live.half_log import begin_half_log, log_id_of_half
from winnow.content_node.live.reading import log_path, read_word_tally
from winnow.content_node.live.word_counts import WordTally
from winnow.content_node.merging.graph import save_vectors_of_store
from winnow.content_node.merging.merge import CarryStates, carry_or_explain
from winnow.content_node.merging.writing import copy_words, open_verified
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.field_tables import write_tables
from winnow.content_node.shard.manifest import (
    CONVERT_INDEX,
    FORMAT,
    SHARD_FILE,
    ShardManifest,
    read_shard_manifest,
    write_manifest,
)
from winnow.content_node.shard.saving import STORE, describe_files
from winnow.content_node.shard.schema import SCHEMA
from winnow.content_node.shard.store import PassageStore
from winnow.domain.partition import halves_of, holds
from winnow.errors import ArtefactError, WinnowError
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import OpenFile

_EF = 128
"""Search width of the graph. Opening a shard needs one, but the verification does not search."""
_COLUMNS = "id, title, text, metadata, title_tokens, text_tokens, text_offsets, vector"
_COPY_PASSAGES = (
    f"INSERT INTO main.passages (row, {_COLUMNS}, sequence, version)"  # noqa: S608
    f" SELECT row_number() OVER (ORDER BY row) - 1, {_COLUMNS}, sequence, version"
    " FROM base.passages WHERE belongs(id) ORDER BY row"
)
_COPY_TOMBSTONES = (
    "INSERT INTO main.tombstones SELECT id, version FROM base.tombstones WHERE belongs(id)"
)
_COUNT_PASSAGES = "SELECT count(*) FROM main.passages"
_SELECT_TOKENS = "SELECT id, title_tokens, text_tokens FROM passages"


def write_half(
    base: Path,
    shard: Path,
    half: int,
    directory: Path,
    *,
    following: bool,
    carry: CarryStates | None = None,
) -> tuple[ShardManifest, str]:
    """Writes a half of a shard. No merge of the shard may run meanwhile.

    Args:
        base: the newest base of the shard.
        shard: the directory of the shard, with its log.
        half: number of the half.
        directory: gets the half; must be empty.
        following: whether the half then follows the log of the shard.
        carry: copies precomputed states; None to leave them out.

    Returns the manifest, and the reason why passages lack states; empty if there is none.

    Raises WinnowError if a file of the shard is damaged, or files cannot be written.

    """
    with _converted_errors(directory):
        parent = open_verified(base)
        manifest = parent.manifest
        if manifest.format < FORMAT:
            raise ArtefactError(f"{base} was built by an older version: {CONVERT_INDEX}")
        _copy_passages(base / manifest.store, directory / STORE, manifest, half)
        parent.files[manifest.store].check()
        passages = _count_rows(directory / STORE)
        counts = parent.files[parent.words.frequencies]
        words = copy_words(counts, parent.words, directory / STORE, directory, passages)
        written = manifest.model_copy(
            update={
                "shard": half,
                "passages": passages,
                "rows": passages,
                "log_id": log_id_of_half(manifest.log_id, half),
                "words": words,
            }
        )
        with contextlib.closing(PassageStore(OpenFile(directory / STORE))) as store:
            vector_file = save_vectors_of_store(store, written, directory)
        described = describe_files(directory, vector_file)
        write_manifest(directory / SHARD_FILE, written.model_copy(update=described))
        sync_directory(directory)
        verified = open_shard(directory, _EF, exact_up_to=0).manifest
        without_states = carry_or_explain(carry, base, directory) if carry is not None else ""
        tally = word_changes_of_half(base, shard, half, manifest)
        parent_number = manifest.shard if following else None
        begin_half_log(directory, parent_number, written.log_id, manifest.sequence, tally)
        return verified, without_states


def word_changes_of_half(base: Path, shard: Path, half: int, manifest: ShardManifest) -> WordTally:
    """Returns by how much writes to a half changed its word counts; `manifest` is that of `base`.

    The log of the shard has only the changes of both halves together. The second half gets the
    difference between its passages in `base` and in the shard as it was built. The first half gets
    the rest. So each change is counted once, no matter when the halves are made.
    """
    if manifest.has_tenants:  # fronts do not use these counts, and the built passages may be gone
        return WordTally()
    first, second = halves_of(manifest.shard, manifest.shards)
    words, sign = WordTally(), 1
    if half == first:
        words, sign = read_word_tally(log_path(shard), manifest.sequence), -1
    if base != shard:
        _add_words(words, base / manifest.store, second, manifest, sign)
        built = read_shard_manifest(shard)
        _add_words(words, shard / built.store, second, built, -sign)
    return words


def _add_words(
    words: WordTally, store: Path, half: int, manifest: ShardManifest, sign: int
) -> None:
    with contextlib.closing(sqlite3.connect(_database_uri(store), uri=True)) as connection:
        for each, title, text in connection.execute(_SELECT_TOKENS):
            if holds(half, manifest.shards, each):
                words.count_passage(title + text, sign)


def _copy_passages(base: Path, target: Path, manifest: ShardManifest, half: int) -> None:
    with contextlib.closing(sqlite3.connect(target.resolve().as_uri(), uri=True)) as connection:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connection.execute("ATTACH ? AS base", (_database_uri(base),))
        connection.executescript(SCHEMA)
        connection.create_function(
            "belongs", 1, lambda each: holds(half, manifest.shards, each), deterministic=True
        )
        connection.execute(_COPY_PASSAGES)
        connection.execute(_COPY_TOMBSTONES)
        write_tables(connection)
        connection.commit()
    sync_file(target)


def _count_rows(store: Path) -> int:
    with contextlib.closing(sqlite3.connect(store)) as connection:
        ((count,),) = connection.execute(_COUNT_PASSAGES)
        return int(count)


def _database_uri(store: Path) -> str:
    return f"{store.resolve().as_uri()}?mode=ro&immutable=1"


@contextlib.contextmanager
def _converted_errors(directory: Path) -> Iterator[None]:
    """Converts errors of the system and of libraries to an error that names the directory."""
    try:
        yield
    except WinnowError:
        raise
    except (OSError, sqlite3.Error, MemoryError, RuntimeError, ValueError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise ArtefactError(f"cannot write {directory}: {error}") from error
