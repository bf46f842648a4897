"""The words of a shard, from its files or, where these are of an older format, worked out."""

from collections.abc import Mapping

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.postings import Postings, in_memory, load_postings
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.words import WordIndex, load_words
from winnow.files.opened import OpenFile


def open_words(
    files: Mapping[str, OpenFile], manifest: ShardManifest, store: PassageStore
) -> tuple[WordIndex, Postings, BuiltRarities]:
    """The words of a shard; those of format 1 and the postings of format 2 are made in memory.

    Raises:
        ArtefactError: they cannot be read, or contradict each other.

    """
    if manifest.words is None:
        return _counted(manifest, store)
    passages = manifest.index_passages or manifest.passages
    grown = manifest.sequence > 0
    words, built = load_words(files, manifest.words, manifest.rows, passages, grown)
    postings = load_postings(files, manifest.words, words.lengths)
    if postings is None:
        postings = in_memory(*store.words(0, manifest.rows))
    return words, postings, built


def _counted(
    manifest: ShardManifest, store: PassageStore
) -> tuple[WordIndex, Postings, BuiltRarities]:
    """Words as rare as they are in this shard: nobody counted them over all."""
    tokens, ends = store.words(0, manifest.rows)
    postings = in_memory(tokens, ends)
    mean = len(tokens) / max(manifest.passages, 1)
    built = BuiltRarities(postings.frequencies, manifest.passages, mean)
    return WordIndex(tokens, ends), postings, built
