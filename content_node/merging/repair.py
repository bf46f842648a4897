"""Rebuilds damaged derived files of a generation from its database.

New files are written to another directory, and then replace the damaged ones, the manifest last.
After an interruption the old manifest is still there, and the next start repairs again.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from winnow.content_node.merging.graph import build_graph_from_store
from winnow.content_node.merging.writing import copy_words
from winnow.content_node.shard.manifest import (
    SHARD_FILE,
    ShardManifest,
    read_shard_manifest,
    write_manifest,
)
from winnow.content_node.shard.saving import file_entry, save_graph, save_vectors
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.relabelling import relabel_data
from winnow.errors import ArtefactError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory
from winnow.files.opened import OpenFile

_ASIDE = "repair.partial"


class UnrepairableError(ArtefactError):
    """A generation has a damaged file that cannot be rebuilt from its other files."""


def repair(directory: Path, others: Sequence[Path]) -> list[str]:
    """Rebuilds the damaged files of a generation; returns their names, none if all are good.

    Word counts of the whole index are not in the database. If they are damaged, they are copied
    from one of `others`, generations of the same shard, whose counts have the expected checksum.

    Raises UnrepairableError if the manifest, the database or the word counts are damaged. Raises
    ArtefactError if files cannot be written.
    """
    manifest = manifest_of_generation(directory)
    damaged = _find_damage(directory, manifest)
    if manifest.store in damaged:
        raise UnrepairableError(str(damaged[manifest.store]))
    if not damaged:
        return []
    aside = directory / _ASIDE
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        rebuilt = _rebuild_files(directory, aside, manifest, set(damaged), others)
        for name in rebuilt:
            (aside / name).replace(directory / name)
        shutil.rmtree(aside)
        sync_directory(directory)
        reach("repair.written")
        _update_manifest(directory, manifest, rebuilt)
    except (OSError, sqlite3.Error, MemoryError, RuntimeError) as error:
        first = next(iter(damaged.values()))
        raise ArtefactError(f"{first}; it cannot be repaired: {error}") from error
    return sorted(damaged)


def manifest_of_generation(directory: Path) -> ShardManifest:
    """Reads the manifest of a generation. Raises UnrepairableError if it is damaged or missing."""
    try:
        return read_shard_manifest(directory)
    except ArtefactError as error:
        raise UnrepairableError(str(error)) from error


def _find_damage(directory: Path, manifest: ShardManifest) -> dict[str, ArtefactError]:
    """Checks all files; returns the error of each damaged one by its name."""
    damaged = {}
    for name, entry in manifest.files.items():
        try:
            OpenFile(directory / name).verify(entry.sha256, entry.bytes)
        except ArtefactError as error:
            damaged[name] = error
    return damaged


def _rebuild_files(
    directory: Path, aside: Path, manifest: ShardManifest, damaged: set[str], others: Sequence[Path]
) -> list[str]:
    """Writes new versions of the damaged files to the directory `aside`; returns their names."""
    rebuilt = []
    if manifest.vector_file in damaged:
        store = PassageStore(OpenFile(directory / manifest.store))
        with contextlib.closing(store):
            if manifest.graph is not None:
                save_graph(build_graph_from_store(store, manifest), aside / manifest.graph)
            else:
                rows, vectors = store.row_numbers(), store.vectors(manifest.dimension)
                save_vectors(rows, vectors, manifest.rows, aside / manifest.vector_file)
        rebuilt.append(manifest.vector_file)
    words = manifest.words
    if words is not None and damaged & set(words.files):
        counts = _intact_counts([directory, *others], manifest, words.frequencies)
        copy_words(counts, words, directory / manifest.store, aside, manifest.rows)
        rebuilt += words.files
    return rebuilt


def _intact_counts(directories: Iterable[Path], manifest: ShardManifest, name: str) -> OpenFile:
    """Opens the first intact file `name` with the word counts of the whole index."""
    entry = manifest.files[name]
    first_error: ArtefactError | None = None
    for directory in directories:
        try:
            file = OpenFile(directory / name)
            file.verify(entry.sha256, entry.bytes)
        except ArtefactError as error:
            first_error = first_error or error
        else:
            return file
    raise UnrepairableError(str(first_error))


def _update_manifest(directory: Path, manifest: ShardManifest, rebuilt: Iterable[str]) -> None:
    """Writes the manifest with the checksums of the rebuilt files."""
    entries = {**manifest.files, **{name: file_entry(directory / name) for name in rebuilt}}
    partial = directory / f"{SHARD_FILE}.partial"
    repaired = write_manifest(partial, manifest.model_copy(update={"files": entries}))
    partial.replace(directory / SHARD_FILE)
    reach("repair.named")
    sync_directory(directory)
    # a rebuilt graph has another checksum, so the generation has another id
    relabel_data(directory, manifest.generation, repaired.generation)
