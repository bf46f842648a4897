"""Repairs a generation whose derived files are damaged, from its database.

Derived files are written aside and replace the damaged ones, the manifest last. A node that is
interrupted finds the old manifest, and repairs again.
"""

import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from winnow.content_node.merging.graph import graph_of_store
from winnow.content_node.merging.writing import copy_words
from winnow.content_node.shard.manifest import (
    SHARD_FILE,
    ShardManifest,
    read_shard_manifest,
    write_manifest,
)
from winnow.content_node.shard.saving import file_entry, save_graph
from winnow.content_node.shard.store import PassageStore
from winnow.errors import ArtefactError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory
from winnow.files.opened import OpenFile

_ASIDE = "repair.partial"


class BeyondRepairError(ArtefactError):
    """Damage of what cannot be made again from anything else in the generation."""


def repair(directory: Path, others: Sequence[Path]) -> list[str]:
    """Makes damaged files of a generation again; returns their names, none if all are good.

    What was counted over the whole index is in no database: it is copied from one of the `others`,
    generations of the same shard, if one has the same.

    Raises BeyondRepairError if its manifest, its database or what was counted is damaged. Raises
    ArtefactError if it cannot be written to.
    """
    manifest = whole_manifest(directory)
    damaged = _damaged(directory, manifest)
    if manifest.store in damaged:
        raise BeyondRepairError(str(damaged[manifest.store]))
    if not damaged:
        return []
    aside = directory / _ASIDE
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        made = _made(directory, aside, manifest, set(damaged), others)
        for name in made:
            (aside / name).replace(directory / name)
        shutil.rmtree(aside)
        sync_directory(directory)
        reach("repair.written")
        _vouch(directory, manifest, made)
    except (OSError, sqlite3.Error, MemoryError, RuntimeError) as error:
        first = next(iter(damaged.values()))
        raise ArtefactError(f"{first}; it cannot be repaired: {error}") from error
    return sorted(damaged)


def whole_manifest(directory: Path) -> ShardManifest:
    """The manifest of a generation. Raises BeyondRepairError if it is damaged or missing."""
    try:
        return read_shard_manifest(directory)
    except ArtefactError as error:
        raise BeyondRepairError(str(error)) from error


def _damaged(directory: Path, manifest: ShardManifest) -> dict[str, ArtefactError]:
    """The error of each damaged file."""
    found = {}
    for name, entry in manifest.files.items():
        try:
            OpenFile(directory / name).verify(entry.sha256, entry.bytes)
        except ArtefactError as error:
            found[name] = error
    return found


def _made(
    directory: Path, aside: Path, manifest: ShardManifest, damaged: set[str], others: Sequence[Path]
) -> list[str]:
    """Writes the damaged files again, aside, under their names in the manifest."""
    made = []
    if manifest.graph in damaged:
        store = PassageStore(OpenFile(directory / manifest.store))
        try:
            graph = graph_of_store(store, manifest)
        finally:
            store.close()
        save_graph(graph, aside / manifest.graph)
        made.append(manifest.graph)
    words = manifest.words
    if words is not None and damaged & set(words.files):
        counts = _counts(directory, manifest, words.frequencies, others)
        copy_words(counts, words, directory / manifest.store, aside, manifest.rows)
        made += words.files
    return made


def _counts(
    directory: Path, manifest: ShardManifest, name: str, others: Iterable[Path]
) -> OpenFile:
    """The good file of the counts over the whole index."""
    entry = manifest.files[name]
    error: ArtefactError | None = None
    for place in (directory, *others):
        try:
            file = OpenFile(place / name)
            file.verify(entry.sha256, entry.bytes)
        except ArtefactError as found:
            error = error or found
        else:
            return file
    raise BeyondRepairError(str(error))


def _vouch(directory: Path, manifest: ShardManifest, made: Iterable[str]) -> None:
    """Writes a manifest with the checksums of the new files."""
    entries = {**manifest.files, **{name: file_entry(directory / name) for name in made}}
    partial = directory / f"{SHARD_FILE}.partial"
    write_manifest(partial, manifest.model_copy(update={"files": entries}))
    partial.replace(directory / SHARD_FILE)
    reach("repair.named")
    sync_directory(directory)
