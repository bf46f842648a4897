"""Writes the states of all shards of an index, or of one shard."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.bundle import Bundle, Manifest
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.reader.lower_layers import LowerLayers, open_lower_layers
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest, read_shard_manifest
from winnow.content_node.states.manifest import DATA, StatesManifest
from winnow.content_node.states.reusable_states import GenerationStates
from winnow.content_node.states.writing import OnAdvance, OnStart, StatesWriter
from winnow.domain.shard import INDEX_FILE
from winnow.errors import ArtefactError, UnavailableError
from winnow.index_directory import present_shards
from winnow.inference.options import InferenceOptions
from winnow.text.tokenizer import Tokenizer

STAGE = "states of shard {shard}"
_MAX_ATTEMPTS = 5
"""Maximum number of attempts: a merge ends one, and the next one copies its states."""


def write_states(
    directory: Path, bundle: Bundle, threads: int, progress: BuildListener
) -> list[StatesManifest]:
    """Writes states beside the newest generation of every shard of an index, or of one shard.

    After an error the same call resumes: the states of finished passages are kept.

    Raises:
        ArtefactError: the bundle's reader is not a split reader, a shard is damaged or was encoded
            by another bundle, or the states cannot be written.
        UnavailableError: another process writes states, or merges interrupted every attempt.

    """
    special = Tokenizer(bundle.tokenizer).special
    lower = open_lower_layers(bundle, special, InferenceOptions(runs=threads))
    shards = list_shards(directory)
    for shard in shards:
        _check_encoding(shard, bundle.manifest)
    return [write_shard_states(shard, lower, threads, progress) for shard in shards]


def _check_encoding(shard: Path, bundle: Manifest) -> None:
    """Raises ArtefactError for a shard of another encoding: no node would serve these states."""
    manifest = read_shard_manifest(shard)
    if manifest.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{shard} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), not by {bundle.name} "
            f"({bundle.encoding_fingerprint}): give {manifest.bundle_name} by --bundle, or build "
            f"the index again with {bundle.name}"
        )


def write_shard_states(
    shard: Path, lower: LowerLayers, threads: int, progress: BuildListener
) -> StatesManifest:
    """Writes states beside the newest generation of a shard; raises as `write_states`.

    If a node merges the shard meanwhile, the computed states are copied to the new generation.
    """
    reusable: Sequence[GenerationStates] = ()
    for _ in range(_MAX_ATTEMPTS):
        newest = read_current_shard(shard)
        on_start = partial(progress.start, STAGE.format(shard=newest.manifest.shard))
        try:
            writer = StatesWriter(newest.base, lower, reusable)
            manifest = _write(writer, threads, on_start, progress.advance)
        except ArtefactError:
            if newest.base.exists():
                raise
        else:
            reusable = writer.reusable
            if manifest is not None and read_current_shard(shard).base == newest.base:
                return manifest
    raise UnavailableError(
        f"{shard} was merged {_MAX_ATTEMPTS} times while its states were computed: try again later"
    )


def _write(
    writer: StatesWriter, threads: int, on_start: OnStart, on_advance: OnAdvance
) -> StatesManifest | None:
    """Writes states; returns None if a merge removed the directory meanwhile."""
    try:
        return writer.write(threads, on_start, on_advance)
    except OSError as error:
        if not writer.directory.exists():
            return None
        data = writer.directory / DATA
        advice = f"; to free space, remove {data}, which is replaced anyway" * data.exists()
        raise ArtefactError(
            f"cannot write the states of {writer.directory}: {error.strerror or error}: correct "
            f"this and try again; computed states are kept{advice}"
        ) from error


def list_shards(directory: Path) -> list[Path]:
    """Returns the shards of an index, or a shard itself; raises ArtefactError for other paths."""
    if (directory / SHARD_FILE).exists() and not (directory / INDEX_FILE).exists():
        return [directory]
    return present_shards(directory, read_index_manifest(directory).shards)
