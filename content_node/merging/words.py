"""The words of a generation, out of its database."""

from pathlib import Path

import numpy as np

from winnow.content_node.shard.manifest import WordsEntry
from winnow.content_node.shard.saving import save_words
from winnow.content_node.shard.store import PassageStore
from winnow.domain.word_counts import WordCounts
from winnow.files.opened import OpenFile
from winnow.files.stored_array import integers


def copy_words(
    counts: OpenFile, before: WordsEntry, store: Path, directory: Path, rows: int
) -> WordsEntry:
    """Writes the words of the passages in the database `store` to `directory`.

    The counts of the whole index as it was built are copied; `before` says how many tokens it had.

    Raises:
        ArtefactError: what is to be read is damaged.
        OSError: they cannot be written.

    """
    built = integers(counts).astype(np.uint32)
    passages = PassageStore(OpenFile(store))
    try:
        tokens, ends = passages.words(len(built), rows)
    finally:
        passages.close()
    return save_words(directory, tokens, ends, WordCounts(built, before.index_tokens))
