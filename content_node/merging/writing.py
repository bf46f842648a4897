"""Writes the files of the next generation durably: passages, words, graph and manifest."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from winnow.content_node.live.reading import log_path, read_writes
from winnow.content_node.merging.graph import (
    build_graph_from_chunks,
    extend_graph,
    save_vectors_of_store,
)
from winnow.content_node.merging.passages import LogRange, MergedPassages, RowCounts
from winnow.content_node.merging.policy import needs_renumbering
from winnow.content_node.shard.hnsw import Graph, can_use_graphs
from winnow.content_node.shard.manifest import (
    CONVERT_INDEX,
    SHARD_FILE,
    ShardManifest,
    WordsEntry,
    read_shard_manifest,
    write_manifest,
)
from winnow.content_node.shard.saving import GRAPH, STORE, describe_files, save_graph, save_words
from winnow.content_node.shard.store import PassageStore
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_integers


@dataclass(frozen=True, slots=True)
class VerifiedBaseShard:
    """A base whose files were verified."""

    directory: Path
    manifest: ShardManifest
    words: WordsEntry
    files: Mapping[str, OpenFile]


def write_generation(base: Path, shard: Path, partial: Path, upto: int) -> None:
    """Merges `base` and the log of `shard` up to the write `upto` into the directory `partial`.

    Raises ArtefactError if base or log is damaged, or they do not belong together. Raises OSError
    or `sqlite3.Error` if files cannot be written.
    """
    old = open_verified(base)
    manifest = old.manifest
    log = log_path(shard)
    merged = MergedPassages(
        target=partial / STORE,
        base=base / manifest.store,
        log=log,
        rows=manifest.rows,
        log_range=LogRange(manifest.sequence, upto),
    )
    with contextlib.closing(merged) as passages:
        log_id = _check_log_id(passages, manifest, upto)
        for _ in read_writes(log, manifest.sequence, upto):
            pass  # reading checks each write: the new manifest would vouch for a damaged one
        counts, renumbered = _count_rows(passages)
        passages.copy()
        old.files[manifest.store].check()
        sync_file(partial / STORE)
        reach("merge.passages")
        index_counts = old.files[old.words.frequencies]
        words = copy_words(index_counts, old.words, partial / STORE, partial, counts.rows)
        reach("merge.words")
        vector_file = _write_vectors(passages, old, counts, partial, renumbered=renumbered)
        reach("merge.graph")
    changed = {
        "passages": counts.passages,
        "rows": counts.rows,
        "sequence": upto,
        "log_id": log_id,
        "words": words,
        **describe_files(partial, vector_file),
    }
    write_manifest(partial / SHARD_FILE, manifest.model_copy(update=changed))
    sync_directory(partial)
    reach("merge.manifest")


def open_verified(directory: Path) -> VerifiedBaseShard:
    """Opens and verifies all files of a base. Raises ArtefactError if one is damaged or missing."""
    manifest = read_shard_manifest(directory)
    if manifest.words is None:
        raise ArtefactError(f"{directory} is of an older version and has no words: {CONVERT_INDEX}")
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    return VerifiedBaseShard(directory, manifest, manifest.words, files)


def _check_log_id(passages: MergedPassages, base: ShardManifest, upto: int) -> str:
    """Returns the id of the log.

    Raises ArtefactError if the log does not continue the base, or ends before the write `upto`.
    """
    state = passages.log_state()
    if base.log_id not in ("", state.log_id) or state.last < upto:
        raise ArtefactError(
            f"the log {state.log_id} ends at write {state.last}, but the merge needs the writes "
            f"{base.sequence + 1} to {upto} of log {base.log_id or '(none)'}"
        )
    return state.log_id


def _count_rows(passages: MergedPassages) -> tuple[RowCounts, bool]:
    """Counts the rows, and renumbers them if needed; returns the counts, True if renumbered.

    A graph keeps the vectors of deleted rows until the rows are renumbered.
    """
    counts = passages.count_rows()
    if needs_renumbering(counts.rows, counts.holes) or passages.deletes_tenant():
        return passages.renumber_rows(), True
    return counts, False


def _write_vectors(
    passages: MergedPassages,
    base: VerifiedBaseShard,
    counts: RowCounts,
    partial: Path,
    *,
    renumbered: bool,
) -> str:
    """Writes the vectors, with a graph if hnswlib is installed; returns the name of the file."""
    if can_use_graphs() and base.manifest.graph is not None:
        save_graph(_merged_graph(passages, base, counts, renumbered), partial / GRAPH)
        return GRAPH
    written = base.manifest.model_copy(update={"rows": counts.rows})
    with contextlib.closing(PassageStore(OpenFile(partial / STORE))) as store:
        return save_vectors_of_store(store, written, partial)


def _merged_graph(
    passages: MergedPassages, base: VerifiedBaseShard, counts: RowCounts, renumbered: bool
) -> Graph:
    """Extends the graph of the base, or builds a new graph if the rows were renumbered."""
    manifest = base.manifest
    if renumbered:
        return build_graph_from_chunks(
            manifest.dimension,
            counts.rows,
            passages.vectors(),
            manifest.m,
            manifest.ef_construction,
        )
    puts, dead = passages.put_vectors(), passages.dead_rows()
    graph = base.files[manifest.vector_file]
    return extend_graph(graph, manifest.dimension, counts.rows, puts, dead)


def copy_words(
    index_counts: OpenFile, old: WordsEntry, store: Path, directory: Path, rows: int
) -> WordsEntry:
    """Writes the words of the passages in the database `store` to `directory`.

    The word counts of the whole built index are copied from the file `index_counts`, and the number
    of its tokens from `old`.

    Raises ArtefactError if an input is damaged. Raises OSError if files cannot be written.
    """
    built = read_integers(index_counts).astype(np.uint32)
    with contextlib.closing(PassageStore(OpenFile(store))) as passages:
        tokens, ends = passages.tokens(len(built), rows)
    return save_words(directory, tokens, ends, WordCounts(built, old.index_tokens))
