"""Writes the states or token vectors of all shards of an index, or of one shard."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.bundle import Bundle, Manifest
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.late_interaction.passage_tokens import open_passage_tokens
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest, read_shard_manifest
from winnow.content_node.states.manifest import StatesManifest
from winnow.content_node.states.model import ReusableStates, StatesModel
from winnow.content_node.states.writing import OnAdvance, OnStart, StatesWriter
from winnow.domain.shard import INDEX_FILE
from winnow.errors import ArtefactError, UnavailableError
from winnow.index_directory import present_shards
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.reading.lower_layers import open_lower_layers
from winnow.reading.states_kind import READER_STATES, StatesKind
from winnow.text.tokenizer import Tokenizer

STAGE = "{noun} of shard {shard}"
_MAX_ATTEMPTS = 5
"""Maximum number of attempts: a merge ends one, and the next one copies its states."""


def write_states(
    directory: Path,
    bundle: Bundle,
    threads: int,
    progress: BuildListener,
    kind: StatesKind = READER_STATES,
) -> list[StatesManifest]:
    """Writes data beside the newest generation of every shard of an index, or of one shard.

    After an error the same call resumes: the data of finished passages is kept.

    Raises:
        ArtefactError: the bundle has no model of this kind, a shard is damaged or was encoded by
            another bundle, or the data cannot be written.
        UnavailableError: another process writes the data, or merges interrupted every attempt.

    """
    model = open_states_model(kind, bundle, InferenceOptions(runs=threads))
    shards = list_shards(directory)
    for shard in shards:
        _check_encoding(shard, bundle.manifest)
    return [write_shard_states(shard, model, threads, progress) for shard in shards]


def open_states_model(
    kind: StatesKind, bundle: Bundle, options: InferenceOptions = PLAIN
) -> StatesModel:
    """Opens the model that computes data of a kind; raises ArtefactError if there is none."""
    special = Tokenizer(bundle.tokenizer).special
    opener = open_lower_layers if kind is READER_STATES else open_passage_tokens
    return opener(bundle, special, options)


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


def fingerprint_of(kind: StatesKind, manifest: Manifest) -> str:
    """Returns the fingerprint of a bundle's model of a kind; empty if there is none."""
    if kind is READER_STATES:
        return manifest.lower_layers_fingerprint
    return manifest.token_vectors_fingerprint


def write_shard_states(
    shard: Path, model: StatesModel, threads: int, progress: BuildListener
) -> StatesManifest:
    """Writes data beside the newest generation of a shard; raises as `write_states`.

    If a node merges the shard meanwhile, the computed data is copied to the new generation.
    """
    noun = model.kind.noun
    reusable: Sequence[ReusableStates] = ()
    for _ in range(_MAX_ATTEMPTS):
        newest = read_current_shard(shard)
        stage = STAGE.format(noun=noun, shard=newest.manifest.shard)
        try:
            writer = StatesWriter(newest.base, model, reusable)
            on_start = partial(progress.start, stage)
            manifest = _write(writer, model.kind, threads, on_start, progress.advance)
        except ArtefactError:
            if newest.base.exists():
                raise
        else:
            reusable = writer.reusable
            if manifest is not None and read_current_shard(shard).base == newest.base:
                return manifest
    raise UnavailableError(
        f"{shard} was merged {_MAX_ATTEMPTS} times while its {noun} were computed: try again later"
    )


def _write(
    writer: StatesWriter,
    kind: StatesKind,
    threads: int,
    on_start: OnStart,
    on_advance: OnAdvance,
) -> StatesManifest | None:
    """Writes data; returns None if a merge removed the directory meanwhile."""
    try:
        return writer.write(threads, on_start, on_advance)
    except OSError as error:
        if not writer.directory.exists():
            return None
        data = writer.directory / kind.data
        advice = f"; to free space, remove {data}, which is replaced anyway" * data.exists()
        raise ArtefactError(
            f"cannot write the {kind.noun} of {writer.directory}: {error.strerror or error}: "
            f"correct this and try again; computed {kind.noun} are kept{advice}"
        ) from error


def list_shards(directory: Path) -> list[Path]:
    """Returns the shards of an index, or a shard itself; raises ArtefactError for other paths."""
    if (directory / SHARD_FILE).exists() and not (directory / INDEX_FILE).exists():
        return [directory]
    return present_shards(directory, read_index_manifest(directory).shards)
