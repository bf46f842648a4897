"""The states of all shards of an index."""

from pathlib import Path

from content_node.indexing.plan import Progress
from content_node.indexing.written import written
from content_node.reader.lower import open_lower
from content_node.shard.manifest import read_index_manifest
from content_node.states.manifest import StatesManifest
from content_node.states.writing import StatesWriter
from winnow.bundle import Bundle
from winnow.domain.layout import shard_name
from winnow.errors import ArtefactError
from winnow.inference.runtime import InferenceOptions
from winnow.text.tokenizer import Tokenizer

STAGE = "states of shard {shard}"


def write_states(
    directory: Path, bundle: Bundle, threads: int, progress: Progress
) -> list[StatesManifest]:
    """Puts states beside the newest generation of every shard.

    Raises:
        ArtefactError: the bundle's reader has none, a shard is damaged, or they cannot be written;
            what was written is kept, and the same call goes on from there.

    """
    special = Tokenizer(bundle.tokenizer).special
    lower = open_lower(bundle, special, InferenceOptions(runs=threads))
    shards, made = read_index_manifest(directory).shards, []
    for shard in range(shards):
        place = written(directory / shard_name(shard, shards)).base

        def started(total: int, done: int, shard: int = shard) -> None:
            progress.start(STAGE.format(shard=shard), total, done)

        try:
            made.append(StatesWriter(place, lower).write(threads, started, progress.advance))
        except OSError as error:
            reason = error.strerror or error
            raise ArtefactError(f"{place}: its states cannot be written: {reason}") from error
    return made
