"""Opens the words of a shard from its files, or computes them for an older format."""

from collections.abc import Mapping

import numpy as np

from winnow.content_node.shard.bm25 import BuiltRarities
from winnow.content_node.shard.manifest import ShardManifest, WordsEntry
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.rows import RowNumbers
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.words import WordIndex
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import StoredArray, read_integers

_BLOCK_ROWS = 1 << 20
"""Rows of postings that are checked at a time."""
Files = Mapping[str, OpenFile]


def open_words(
    files: Files, manifest: ShardManifest, store: PassageStore
) -> tuple[WordIndex, Postings, BuiltRarities]:
    """Opens the words of a shard.

    Words of format 1 and postings of format 2 are computed in memory. Rarities of format 1 are
    counted in this shard alone, not over the index.

    Raises:
        ArtefactError: the files cannot be read, or contradict each other.

    """
    if manifest.words is None:
        tokens, ends = store.tokens(0, manifest.rows)
        postings = Postings.from_tokens(tokens, ends)
        mean = len(tokens) / max(manifest.passages, 1)
        built = BuiltRarities(postings.frequencies, manifest.passages, mean)
        return WordIndex(tokens, ends), postings, built
    passages = manifest.index_passages or manifest.passages
    has_writes = manifest.sequence > 0
    words, built = load_words(files, manifest.words, manifest.rows, passages, has_writes=has_writes)
    loaded = _load_postings(files, manifest.words, words.lengths)
    return words, loaded or Postings.from_tokens(*store.tokens(0, manifest.rows)), built


def load_words(
    files: Files, entry: WordsEntry, rows: int, passages: int, *, has_writes: bool
) -> tuple[WordIndex, BuiltRarities]:
    """Opens the words of a shard with `rows` rows, of an index that was built with `passages`.

    A shard that `has_writes` may have more tokens than the index had when it was built.

    Raises:
        ArtefactError: the files cannot be read, or contradict each other.

    """
    tokens = StoredArray(files[entry.tokens])
    ends, frequencies = read_integers(files[entry.ends]), read_integers(files[entry.frequencies])
    if len(ends) != rows or (rows and ends[-1] != len(tokens)):
        raise ArtefactError(
            f"{files[entry.ends].path} has {len(ends)} rows and "
            f"{files[entry.tokens].path.name} has {len(tokens)} tokens, the manifest says {rows} "
            "rows: build the index again"
        )
    if (np.diff(ends, prepend=0) < 0).any():
        raise ArtefactError(f"{files[entry.ends].path} is not in order: build the index again")
    if (frequencies < 0).any():
        raise ArtefactError(
            f"{files[entry.frequencies].path} has a negative count: build the index again"
        )
    highest = int(frequencies.max(initial=0))
    if highest > passages:
        raise ArtefactError(
            f"a token is in {highest} passages, but the manifest says that the index has "
            f"{passages} passages: build the index again"
        )
    if entry.index_tokens < len(tokens) and not has_writes:
        raise ArtefactError(
            f"the shard has {len(tokens)} tokens, but the manifest says that the index has "
            f"{entry.index_tokens}: build the index again"
        )
    built = BuiltRarities(frequencies, passages, entry.index_tokens / max(passages, 1))
    return WordIndex(tokens, ends, tokens.check), built


def _load_postings(files: Files, entry: WordsEntry, lengths: RowNumbers) -> Postings | None:
    """Opens the postings of a shard whose rows have `lengths` tokens; None before format 3."""
    if entry.postings is None or entry.starts is None or entry.counts is None:
        return None
    rows, counts = StoredArray(files[entry.postings]), StoredArray(files[entry.counts])
    starts = read_integers(files[entry.starts])
    path = files[entry.starts].path
    if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise ArtefactError(f"{path} is not in order: build the index again")
    if not starts[-1] == len(rows) == len(counts):
        raise ArtefactError(
            f"{path} ends at {starts[-1]}, but the postings have {len(rows)} rows and "
            f"{len(counts)} counts: build the index again"
        )
    _check_order(files[entry.postings], rows, starts, len(lengths))

    def check() -> None:
        rows.check()
        counts.check()

    return Postings(starts=starts, rows=rows, counts=counts, lengths=lengths, check=check)


def _check_order(file: OpenFile, rows: StoredArray, starts: RowNumbers, end: int) -> None:
    """Raises ArtefactError if a row is not below `end`, or the rows of a token do not ascend."""
    before = np.zeros(0, np.int64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : min(start + _BLOCK_ROWS, len(rows))].astype(np.int64)
        firsts = starts[(starts >= start) & (starts < start + len(block))] - start
        steps = np.diff(block, prepend=before if len(before) else -1)
        steps[firsts] = 1
        if (steps <= 0).any() or block.max() >= end:
            raise ArtefactError(
                f"{file.path} has rows that are not in order, or not below {end}: build the index "
                "again"
            )
        before = block[-1:]
