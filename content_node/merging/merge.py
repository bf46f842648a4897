"""The next generation of a shard: its base and its log up to a write, made one.

Written aside, verified as a node verifies it, made durable, and put in place by a rename: it is
there as a whole or not at all. Runs in a process of its own.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import hnswlib

from content_node.live.reading import LIVE, entries, log_path
from content_node.merging.graph import grown_graph, new_graph
from content_node.merging.lock import locked
from content_node.merging.names import LOCK, damaged_path, generation_path, partial_path
from content_node.merging.passages import Counts, Passages, Span
from content_node.merging.policy import is_holed
from content_node.merging.said import Merged
from content_node.merging.words import copy_words
from content_node.shard import open_shard
from content_node.shard.manifest import (
    FORMAT,
    SHARD_FILE,
    ShardManifest,
    read_shard_manifest,
    write,
)
from content_node.shard.saving import FILES, GRAPH, STORE, file_entry, save_graph, sync_file
from winnow.errors import ArtefactError, WinnowError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory
from winnow.files.opened import OpenFile

Tell = Callable[[str], None]
_EF = 128


def merge(base: Path, shard: Path, upto: int, tell: Tell) -> Merged:
    """Makes the generation of `shard` that holds its log up to a write, of what `base` holds.

    `tell` is called with the name of each stage. A generation that is there already is taken if it
    is good.

    Raises:
        WinnowError: it cannot be made; nothing is left of it.

    """
    generation = generation_path(shard, upto)
    with _named(generation), locked(shard / LIVE / LOCK):
        manifest = _there(generation)
        if manifest is None:
            manifest = _made(base, shard, generation, upto, tell)
    return Merged(str(generation), manifest.sequence, manifest.passages, manifest.rows)


def _there(generation: Path) -> ShardManifest | None:
    """What an earlier merge made; it is put aside if it is not good."""
    if not generation.exists():
        return None
    try:
        return _verified(generation)
    except ArtefactError:
        aside = damaged_path(generation)
        shutil.rmtree(aside, ignore_errors=True)
        generation.rename(aside)
        return None


def _made(base: Path, shard: Path, generation: Path, upto: int, tell: Tell) -> ShardManifest:
    partial = partial_path(generation)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        reach("merge.begun")
        _write(base, shard, partial, upto, tell)
        tell("verifying")
        manifest = _verified(partial)
        reach("merge.verified")
        partial.rename(generation)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    reach("merge.renamed")
    sync_directory(generation.parent)
    reach("merge.synced")
    return manifest


def _write(base: Path, shard: Path, partial: Path, upto: int, tell: Tell) -> None:
    """Writes everything, durably."""
    before = read_shard_manifest(base)
    built = before.words
    if built is None:
        raise ArtefactError(
            f"{base} is of an older version and has no words: `winnow index build --passages INDEX "
            "--out NEW` brings it up to date"
        )
    files = {name: OpenFile(base / name) for name in before.files}
    for name, entry in before.files.items():
        files[name].verify(entry.sha256, entry.bytes)
    log = log_path(shard)
    tell("passages")
    span = Span(before.sequence, upto)
    sources = Passages(partial / STORE, base / before.store, log, before.rows, span)
    with contextlib.closing(sources) as passages:
        log_id = _expect_log(passages, before, upto)
        for _ in entries(log, before.sequence, upto):
            pass  # each is checked: a damaged one would be vouched for from now on
        counts = passages.count()
        anew = is_holed(counts.rows, counts.holes)
        if anew:
            counts = passages.number_anew()
        passages.copy()
        files[before.store].check()
        sync_file(partial / STORE)
        reach("merge.passages")
        tell("words")
        counted = files[built.frequencies]
        words = copy_words(counted, built, partial / STORE, partial, counts.rows)
        reach("merge.words")
        tell("graph")
        save_graph(_graph(passages, files, before, counts, anew), partial / GRAPH)
        reach("merge.graph")
    manifest = before.model_copy(
        update={
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
    )
    write(partial / SHARD_FILE, manifest)
    sync_directory(partial)
    reach("merge.manifest")


def _expect_log(passages: Passages, before: ShardManifest, upto: int) -> str:
    """The name of the log; raises ArtefactError if it is not that of the base, or ends before."""
    state = passages.log_state()
    if before.log_id not in ("", state.log_id) or state.last < upto:
        raise ArtefactError(
            f"the log {state.log_id} ends at write {state.last}; one that goes on after write "
            f"{before.sequence} of log {before.log_id or '(none)'} up to {upto} is needed"
        )
    return state.log_id


def _graph(
    passages: Passages,
    files: dict[str, OpenFile],
    before: ShardManifest,
    counts: Counts,
    anew: bool,
) -> hnswlib.Index:
    if anew:
        return new_graph(
            before.dimension, counts.rows, passages.vectors(), before.m, before.ef_construction
        )
    old = files[before.graph]
    return grown_graph(old, before.dimension, counts.rows, passages.put_vectors(), passages.dead())


def _verified(directory: Path) -> ShardManifest:
    """What a node would serve from it; raises ArtefactError if it would not."""
    return open_shard(directory, _EF, exact_up_to=0).manifest


@contextlib.contextmanager
def _named(generation: Path) -> Iterator[None]:
    """What the system says becomes an error that names the generation."""
    try:
        yield
    except WinnowError:
        raise
    except (OSError, sqlite3.Error, MemoryError, RuntimeError, ValueError) as error:
        raise ArtefactError(f"{generation} cannot be made: {error}") from error
