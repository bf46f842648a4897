"""The words of the next generation, out of its database."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from content_node.shard.manifest import ShardManifest, WordsEntry
from content_node.shard.saving import STORE, save_words
from content_node.shard.store import PassageStore
from content_node.shard.stored_array import integers
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile


def copy_words(
    files: Mapping[str, OpenFile], before: ShardManifest, directory: Path, rows: int
) -> WordsEntry:
    """Writes the words of the passages in `directory`, and the counts of the whole index as they
    are in `files`, those of the generation before.

    Raises:
        ArtefactError: there are no such counts.

    """
    entry = before.words
    if entry is None:
        raise ArtefactError(
            "the shard is of an older version and has no words: `winnow index build --passages "
            "INDEX --out NEW` brings it up to date"
        )
    built = integers(files[entry.frequencies]).astype(np.uint32)
    store = PassageStore(OpenFile(directory / STORE))
    try:
        tokens, ends = store.words(len(built), rows)
    finally:
        store.close()
    return save_words(directory, tokens, ends, WordCounts(built, entry.index_tokens))
