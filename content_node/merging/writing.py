"""Writes the files of the next generation: passages, words, graph and manifest, each durable."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import hnswlib
import numpy as np

from winnow.content_node.live.reading import entries, log_path
from winnow.content_node.merging.graph import grown_graph, new_graph
from winnow.content_node.merging.passages import Counts, LogRange, Passages
from winnow.content_node.merging.policy import is_holed
from winnow.content_node.shard.manifest import (
    FORMAT,
    SHARD_FILE,
    ShardManifest,
    WordsEntry,
    read_shard_manifest,
    write_manifest,
)
from winnow.content_node.shard.saving import (
    FILES,
    GRAPH,
    STORE,
    file_entry,
    save_graph,
    save_words,
)
from winnow.content_node.shard.store import PassageStore
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_integers


@dataclass(frozen=True, slots=True)
class _Base:
    """What is merged into, verified."""

    directory: Path
    manifest: ShardManifest
    words: WordsEntry
    files: Mapping[str, OpenFile]


def write_generation(base: Path, shard: Path, partial: Path, upto: int) -> None:
    """Writes what `base` and the log of `shard` up to a write make, to the directory `partial`.
    Raises ArtefactError if what is merged is damaged, or does not belong together. Raises OSError
    if it cannot be written; `sqlite3.Error` as well.
    """
    before = _verified_base(base)
    manifest = before.manifest
    log, span = log_path(shard), LogRange(manifest.sequence, upto)
    sources = Passages(
        target=partial / STORE, base=base / manifest.store, log=log, rows=manifest.rows, span=span
    )
    with contextlib.closing(sources) as passages:
        log_id = _expect_log(passages, manifest, upto)
        for _ in entries(log, manifest.sequence, upto):
            pass  # each is checked: a damaged file must not get a valid checksum
        counts, renumbered = _numbered(passages)
        passages.copy()
        before.files[manifest.store].check()
        sync_file(partial / STORE)
        reach("merge.passages")
        counted = before.files[before.words.frequencies]
        words = copy_words(counted, before.words, partial / STORE, partial, counts.rows)
        reach("merge.words")
        save_graph(_graph(passages, before, counts, renumbered), partial / GRAPH)
        reach("merge.graph")
    _vouch(partial, manifest, words, counts, upto, log_id)
    reach("merge.manifest")


def _verified_base(directory: Path) -> _Base:
    manifest = read_shard_manifest(directory)
    if manifest.words is None:
        raise ArtefactError(
            f"{directory} is of an older version and has no words: `winnow index build --passages "
            "INDEX --out NEW` brings it up to date"
        )
    files = {name: OpenFile(directory / name) for name in manifest.files}
    for name, entry in manifest.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    return _Base(directory, manifest, manifest.words, files)


def _expect_log(passages: Passages, before: ShardManifest, upto: int) -> str:
    """The name of the log; raises ArtefactError if it is not that of the base, or ends before."""
    state = passages.log_state()
    if before.log_id not in ("", state.log_id) or state.last < upto:
        raise ArtefactError(
            f"the log {state.log_id} ends at write {state.last}; one that goes on after write "
            f"{before.sequence} of log {before.log_id or '(none)'} up to {upto} is needed"
        )
    return state.log_id


def _numbered(passages: Passages) -> tuple[Counts, bool]:
    """The counts of rows, and whether the rows were numbered again."""
    counts = passages.count()
    if is_holed(counts.rows, counts.holes):
        return passages.number_again(), True
    return counts, False


def _graph(passages: Passages, before: _Base, counts: Counts, renumbered: bool) -> hnswlib.Index:
    old = before.manifest
    if renumbered:
        return new_graph(old.dimension, counts.rows, passages.vectors(), old.m, old.ef_construction)
    puts, dead = passages.put_vectors(), passages.dead()
    return grown_graph(before.files[old.graph], old.dimension, counts.rows, puts, dead)


def _vouch(
    partial: Path, before: ShardManifest, words: WordsEntry, counts: Counts, upto: int, log_id: str
) -> None:
    changed = {
        "format": FORMAT,
        "passages": counts.passages,
        "rows": counts.rows,
        "sequence": upto,
        "log_id": log_id,
        "store": STORE,
        "graph": GRAPH,
        "words": words,
        "files": {name: file_entry(partial / name) for name in FILES},
    }
    write_manifest(partial / SHARD_FILE, before.model_copy(update=changed))
    sync_directory(partial)


def copy_words(
    counts: OpenFile, before: WordsEntry, store: Path, directory: Path, rows: int
) -> WordsEntry:
    """Writes the words of the passages in the database `store` to `directory`.

    The counts of the whole index as it was built are copied; `before` says how many tokens it had.

    Raises ArtefactError if what is to be read is damaged. Raises OSError if they cannot be written.
    """
    built = read_integers(counts).astype(np.uint32)
    passages = PassageStore(OpenFile(store))
    try:
        tokens, ends = passages.tokens(len(built), rows)
    finally:
        passages.close()
    return save_words(directory, tokens, ends, WordCounts(built, before.index_tokens))
