"""The states of all shards of an index, or of one shard."""

from functools import partial
from pathlib import Path

from winnow.bundle import Bundle, Manifest
from winnow.content_node.indexing.plan import BuildListener
from winnow.content_node.indexing.written import written
from winnow.content_node.reader.lower import Lower, open_lower
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest, read_shard_manifest
from winnow.content_node.states.known import ReusableStates
from winnow.content_node.states.manifest import DATA, StatesManifest
from winnow.content_node.states.writing import Advance, Started, StatesWriter
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError, UnavailableError
from winnow.inference.runtime import InferenceOptions
from winnow.text.tokenizer import Tokenizer

STAGE = "states of shard {shard}"
_TRIES = 5
"""What was computed before a merge is only copied after it."""


def write_states(
    directory: Path, bundle: Bundle, threads: int, progress: BuildListener
) -> list[StatesManifest]:
    """Puts states beside the newest generation of every shard; `directory` may be a shard, too.

    Raises:
        ArtefactError: the bundle's reader has none, a shard is damaged or was encoded by another
            bundle, or they cannot be written; what was written is kept, and the same call goes on
            from there.
        UnavailableError: another process is at it, or a shard was merged again and again meanwhile.

    """
    special = Tokenizer(bundle.tokenizer).special
    lower = open_lower(bundle, special, InferenceOptions(runs=threads))
    for shard in shards(directory):
        _expect_same_encoding(shard, bundle.manifest)
    return [write_shard_states(each, lower, threads, progress) for each in shards(directory)]


def _expect_same_encoding(shard: Path, bundle: Manifest) -> None:
    """No node would serve the shard with these states."""
    found = read_shard_manifest(shard)
    if found.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{shard} was encoded by bundle {found.bundle_name} ({found.encoding_fingerprint}), "
            f"{bundle.name} encodes otherwise ({bundle.encoding_fingerprint}): give that bundle, "
            "or build the index anew with this one"
        )


def write_shard_states(
    shard: Path, lower: Lower, threads: int, progress: BuildListener
) -> StatesManifest:
    """Puts states beside the newest generation of a shard; raises as `write_states`.

    A node may be merging it meanwhile, without states: those that were computed go to what it made.
    """
    known: ReusableStates | None = None
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
        f"{shard} was merged again and again while its states were computed: do it again later"
    )


def _made(
    writer: StatesWriter, threads: int, started: Started, advance: Advance
) -> StatesManifest | None:
    """None if the directory is gone by now."""
    try:
        return writer.write(threads, started, advance)
    except OSError as error:
        if not writer.directory.exists():
            return None
        others = writer.directory / DATA
        room = f"; {others} is to be replaced, and may be removed first" * others.exists()
        raise ArtefactError(
            f"{writer.directory}: its states cannot be written: {error.strerror or error}: see to "
            f"that; what was computed is kept{room}"
        ) from error


def shards(directory: Path) -> list[Path]:
    """Those of an index, or a shard itself; raises ArtefactError if it is neither."""
    if (directory / SHARD_FILE).exists() and not (directory / INDEX_FILE).exists():
        return [directory]
    count = read_index_manifest(directory).shards
    return [directory / shard_name(shard, count) for shard in range(count)]
