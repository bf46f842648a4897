"""Merges the base and the log of a shard, up to a write, into the next generation.

The generation is written aside, verified as a node verifies it, made durable, and renamed: it is
there as a whole or not at all. A merge runs in a child process.
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

Carry = Callable[[Path, Path], str]
"""Copies what lies beside the first generation to the second one, which is whole without it.

Returns what is lacking; empty if nothing is.
"""


def merge(base: Path, shard: Path, upto: int, carry: Carry | None = None) -> Merged:
    """Makes the generation of `shard` that holds its log up to a write, from `base` and the log.

    `carry` is called before the generation is put in place. A good generation that exists already
    is taken. Raises WinnowError if the generation cannot be made; nothing is left of it.
    """
    generation = generation_path(shard, upto)
    with _named(generation), merge_lock(shard):
        remove_partial(shard)  # what killed merges left
        manifest, lacking = _existing(generation), ""
        if manifest is None:
            manifest, lacking = _made(base, shard, generation, upto, carry)
    return Merged(
        directory=str(generation),
        sequence=manifest.sequence,
        passages=manifest.passages,
        rows=manifest.rows,
        without_states=lacking,
    )


def _existing(generation: Path) -> ShardManifest | None:
    """The manifest of an earlier merge; a generation that is not good is put aside."""
    if not generation.exists():
        return None
    try:
        manifest = _verified(generation)
    except ArtefactError:
        aside = damaged_path(generation)
        shutil.rmtree(aside, ignore_errors=True)
        generation.rename(aside)
        return None
    sync_directory(generation.parent)  # the earlier merge may have been killed before it did
    return manifest


def _made(
    base: Path, shard: Path, generation: Path, upto: int, carry: Carry | None
) -> tuple[ShardManifest, str]:
    """The manifest of the new generation, and what `carry` returned."""
    partial, lacking = partial_path(generation), ""
    partial.mkdir()
    try:
        reach("merge.begun")
        write_generation(base, shard, partial, upto)
        manifest = _verified(partial)
        reach("merge.verified")
        if carry is not None:
            lacking = _carried(carry, base, partial)
        partial.rename(generation)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    reach("merge.renamed")
    sync_directory(generation.parent)
    reach("merge.synced")
    return manifest, lacking


def _carried(carry: Carry, base: Path, made: Path) -> str:
    """What `carry` returns; if it fails, the reason, and nothing of it is left.

    A generation is whole without it, and writes that cannot be merged would be refused in the end.
    """
    whole = set(made.iterdir())
    try:
        return carry(base, made)
    except Exception as error:  # noqa: BLE001 (a full disk, a bundle that was replaced)
        for path in set(made.iterdir()) - whole:
            path.unlink()
        return str(error) or repr(error)


def _verified(directory: Path) -> ShardManifest:
    """The manifest of a generation. Raises ArtefactError if a node would not serve it."""
    return open_shard(directory, _EF, exact_up_to=0).manifest


@contextlib.contextmanager
def _named(generation: Path) -> Iterator[None]:
    """Turns errors of the system into an error that names the generation."""
    try:
        yield
    except WinnowError:
        raise
    except (OSError, sqlite3.Error, MemoryError, RuntimeError, ValueError) as error:
        raise ArtefactError(f"{generation} cannot be made: {error}") from error
