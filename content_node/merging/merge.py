"""The next generation of a shard: its base and its log up to a write, made one.

Written aside, verified as a node verifies it, made durable, and put in place by a rename: it is
there as a whole or not at all. Runs in a process of its own.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from winnow.content_node.merging.names import damaged_path, generation_path, partial_path
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.tidying import merge_lock, remove_partial
from winnow.content_node.merging.writing import Tell, write_generation
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import ShardManifest
from winnow.errors import ArtefactError, WinnowError
from winnow.faultpoints import reach
from winnow.files.durable import sync_directory

_EF = 128


Carry = Callable[[Path, Path], str]
"""Puts beside the second generation what lies beside the first, and says what is lacking; empty if
nothing is. It can be done without.
"""


def merge(base: Path, shard: Path, upto: int, tell: Tell, carry: Carry | None = None) -> Merged:
    """Makes the generation of `shard` that holds its log up to a write, of what `base` holds.

    `tell` is called with the name of each stage; `carry` comes before the generation is put in
    place. A generation that is there already is taken if it is good.

    Raises WinnowError if it cannot be made; nothing is left of it.
    """
    generation = generation_path(shard, upto)
    with _named(generation), merge_lock(shard):
        remove_partial(shard)  # of merges that were killed
        manifest, lacking = _there(generation), ""
        if manifest is None:
            manifest, lacking = _made(base, shard, generation, upto, tell, carry)
    return Merged(
        directory=str(generation),
        sequence=manifest.sequence,
        passages=manifest.passages,
        rows=manifest.rows,
        without_states=lacking,
    )


def _there(generation: Path) -> ShardManifest | None:
    """What an earlier merge made; it is put aside if it is not good."""
    if not generation.exists():
        return None
    try:
        manifest = _verified(generation)
    except ArtefactError:
        aside = damaged_path(generation)
        shutil.rmtree(aside, ignore_errors=True)
        generation.rename(aside)
        return None
    sync_directory(generation.parent)  # it may have been killed before it did
    return manifest


def _made(
    base: Path, shard: Path, generation: Path, upto: int, tell: Tell, carry: Carry | None
) -> tuple[ShardManifest, str]:
    """What was made, and why nothing could be carried on."""
    partial, lacking = partial_path(generation), ""
    partial.mkdir()
    try:
        reach("merge.begun")
        write_generation(base, shard, partial, upto, tell)
        tell("verifying")
        manifest = _verified(partial)
        reach("merge.verified")
        if carry is not None:
            tell("states")
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
    """Why that was not possible, and then nothing of it is left: writes that cannot be merged would
    be refused in the end, and without what is carried a generation is whole.
    """
    whole = set(made.iterdir())
    try:
        return carry(base, made)
    except Exception as error:  # noqa: BLE001 (a full disk, a bundle that was replaced)
        for path in set(made.iterdir()) - whole:
            path.unlink()
        return str(error) or repr(error)


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
