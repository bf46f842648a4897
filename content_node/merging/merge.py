"""Merges the base and the log of a shard, up to a write, into the next generation.

The generation is written under another name, verified as a node verifies it, made durable, and
renamed, so that no partial generation ever appears. A merge runs in a child process.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.content_node.merging.names import damaged_path, generation_path, partial_path
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.tidying import merge_lock, remove_partial
from winnow.content_node.merging.writing import write_generation
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import ShardManifest
from winnow.errors import ArtefactError, WinnowError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory

_EF = 128
"""hnswlib's search width, which the verification needs but does not use."""

CarryStates = Callable[[Path, Path], str]
"""Copies precomputed states from the first generation to the second one.

Returns why passages are left without states, or "" if no passage is.
"""


def merge(base: Path, shard: Path, upto: int, carry: CarryStates | None = None) -> Merged:
    """Writes the generation of `shard` that holds all writes up to `upto`, from `base` and the log.

    `carry` is called before the generation is renamed into place. A good generation that exists
    already is reused. Raises WinnowError on failure; no partial generation is left then.
    """
    generation = generation_path(shard, upto)
    with _generation_errors(generation), merge_lock(shard):
        remove_partial(shard)  # killed merges may have left some
        manifest, without_states = _existing_manifest(generation), ""
        if manifest is None:
            manifest, without_states = _create_generation(base, shard, generation, upto, carry)
    return Merged(
        directory=str(generation),
        sequence=manifest.sequence,
        passages=manifest.passages,
        rows=manifest.rows,
        without_states=without_states,
    )


def _existing_manifest(generation: Path) -> ShardManifest | None:
    """Returns the manifest of a generation that an earlier merge wrote; None if there is none.

    A generation that does not pass the verification is moved aside.
    """
    if not generation.exists():
        return None
    try:
        manifest = _verify_generation(generation)
    except ArtefactError:
        aside = damaged_path(generation)
        shutil.rmtree(aside, ignore_errors=True)
        generation.rename(aside)
        return None
    sync_directory(generation.parent)  # the earlier merge may have been killed before it did
    return manifest


def _create_generation(
    base: Path, shard: Path, generation: Path, upto: int, carry: CarryStates | None
) -> tuple[ShardManifest, str]:
    """Writes a generation; returns its manifest and the result of `carry`."""
    partial, without_states = partial_path(generation), ""
    partial.mkdir()
    try:
        reach("merge.begun")
        write_generation(base, shard, partial, upto)
        manifest = _verify_generation(partial)
        reach("merge.verified")
        if carry is not None:
            without_states = carry_or_explain(carry, base, partial)
        partial.rename(generation)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    reach("merge.renamed")
    sync_directory(generation.parent)
    reach("merge.synced")
    return manifest, without_states


def carry_or_explain(carry: CarryStates, base: Path, generation: Path) -> str:
    """Returns the result of `carry`; if it fails, removes its files and returns the reason.

    A failure does not fail the merge: a generation is complete without states, and a shard that
    cannot merge refuses writes in the end.
    """
    files = set(generation.iterdir())
    try:
        return carry(base, generation)
    except Exception as error:  # noqa: BLE001 (a full disk, a bundle that was replaced)
        for path in set(generation.iterdir()) - files:
            path.unlink()
        return str(error) or repr(error)


def _verify_generation(directory: Path) -> ShardManifest:
    """Returns the manifest of a generation. Raises ArtefactError if a node would not serve it."""
    return open_shard(directory, _EF, exact_up_to=0).manifest


@contextlib.contextmanager
def _generation_errors(generation: Path) -> Iterator[None]:
    """Converts errors of the operating system and of libraries to one that names the generation."""
    try:
        yield
    except WinnowError:
        raise
    except (OSError, sqlite3.Error, MemoryError, RuntimeError, ValueError) as error:
        raise ArtefactError(f"cannot write {generation}: {error}") from error
