"""How many passages of the whole index had each word when it was built: the same in every shard."""

import numpy as np

from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.word_counts import WordCounts
from winnow.errors import ArtefactError, NotLoadedError
from winnow.files.opened import OpenFile


def built_counts(base: StoredSegment) -> WordCounts:
    """Reads the counts of a shard; not on an event loop.

    Raises:
        NotLoadedError: the shard is of a version that has none, or its files were written to.

    """
    words = base.manifest.words
    if words is None:
        raise NotLoadedError(
            f"shard {base.manifest.shard} is of an older version and does not know how rare words "
            "are: `winnow index build --passages INDEX --out NEW` brings it up to date"
        )
    [file] = [file for file in base.files if file.path.name == words.frequencies]
    try:
        passages = _read(file)
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error
    return WordCounts(passages, words.index_tokens, base.manifest.index_passages)


def _read(file: OpenFile) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    with file.reader() as reader:
        values = np.load(reader, allow_pickle=False)
    file.check()
    return np.asarray(values, np.uint32)
