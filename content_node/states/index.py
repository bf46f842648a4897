"""Writes the states of all shards of an index, or of one shard."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.bundle import Bundle, Manifest
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.written import written
from winnow.content_node.reader.lower_layers import LowerLayers, open_lower_layers
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest, read_shard_manifest
from winnow.content_node.states.manifest import DATA, StatesManifest
from winnow.content_node.states.reusable_states import GenerationStates
from winnow.content_node.states.writing import OnCopied, Started, StatesWriter
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError, UnavailableError
from winnow.inference.runtime import InferenceOptions
from winnow.text.tokenizer import Tokenizer

STAGE = "states of shard {shard}"
_TRIES = 5
"""Writes of a shard that is merged meanwhile; each copies the states of the one before."""


def write_states(
    directory: Path, bundle: Bundle, threads: int, progress: BuildListener
) -> list[StatesManifest]:
    """Writes states beside the newest generation of every shard; `directory` may be a shard, too.

    After an error the same call resumes: finished passages are kept.

    Raises:
        ArtefactError: the bundle's reader is not a split reader, a shard is damaged or was encoded
            by another bundle, or the states cannot be written.
        UnavailableError: another process writes states, or the shard was merged too often
            meanwhile.

    """
    special = Tokenizer(bundle.tokenizer).special
    lower = open_lower_layers(bundle, special, InferenceOptions(runs=threads))
    for shard in shards(directory):
        _expect_same_encoding(shard, bundle.manifest)
    return [write_shard_states(each, lower, threads, progress) for each in shards(directory)]


def _expect_same_encoding(shard: Path, bundle: Manifest) -> None:
    """Raises ArtefactError for a shard of another encoding: no node would serve these states."""
    found = read_shard_manifest(shard)
    if found.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{shard} was encoded by bundle {found.bundle_name} ({found.encoding_fingerprint}), "
            f"{bundle.name} encodes in another way ({bundle.encoding_fingerprint}): use that "
            "bundle, or build the index again with this one"
        )


def write_shard_states(
    shard: Path, lower: LowerLayers, threads: int, progress: BuildListener
) -> StatesManifest:
    """Writes states beside the newest generation of a shard; raises as `write_states`.

    If a node merges the shard meanwhile, the computed states are copied to the new generation.
    """
    known: Sequence[GenerationStates] = ()
    for _ in range(_TRIES):
        now = written(shard)
        started = partial(progress.start, STAGE.format(shard=now.manifest.shard))
        try:
            writer = StatesWriter(now.base, lower, known)
            made = _made(writer, threads, started, progress.advance)
        except ArtefactError:
            if now.base.exists():
                raise
        else:
            known = writer.known
            if made is not None and written(shard).base == now.base:
                return made
    raise UnavailableError(
        f"{shard} was merged again and again while its states were computed: try again later"
    )


def _made(
    writer: StatesWriter, threads: int, started: Started, advance: OnCopied
) -> StatesManifest | None:
    """Writes states; returns None if the directory is gone."""
    try:
        return writer.write(threads, started, advance)
    except OSError as error:
        if not writer.directory.exists():
            return None
        others = writer.directory / DATA
        room = f"; you may remove {others} first, it will be replaced" * others.exists()
        raise ArtefactError(
            f"{writer.directory}: its states cannot be written: {error.strerror or error}: fix "
            f"this and try again; computed states are kept{room}"
        ) from error


def shards(directory: Path) -> list[Path]:
    """Returns the shards of an index, or a shard itself; raises ArtefactError for other paths."""
    if (directory / SHARD_FILE).exists() and not (directory / INDEX_FILE).exists():
        return [directory]
    count = read_index_manifest(directory).shards
    return [directory / shard_name(shard, count) for shard in range(count)]
