"""Rows of a file as requests of some size, each with the line up to which it goes. Pure."""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from winnow.client import PassageFields
from winnow.passages.cutting import MARK
from winnow.passages.rows import Row

MOST_BYTES = 700_000
"""Of a request, in UTF-8 and without what is around the texts; a message has at most 1 MB."""
PACKED = 4
"""Bytes of metadata in a message for each character of JSON, at most: `1, ` takes eleven."""


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """What is sent at once."""

    rows: tuple[Row, ...]
    through: int
    """The last line that ends in it, or in one before it."""
    after: tuple[str, ...] = ()
    """Ids that the documents which end in it had next when they were longer."""
    documents: tuple[str, ...] = ()
    """Documents that are deleted; `after` has the first passage of each."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of its passages."""
        return tuple(row.passage.id for row in self.rows)

    def fields(self) -> list[PassageFields]:
        """As a client stores them."""
        return [_fields(row) for row in self.rows]


def batches(rows: Iterable[Row], most: int, documents: bool = False) -> Iterator[FeedBatch]:
    """The rows in their order, up to `most` at a time.

    An id comes once in a batch: what a document no longer has is deleted after its batch, and would
    else take what a later line gave it. `documents`: whether rows of one line are one document that
    was cut.
    """
    held: list[Row] = []
    ids: set[str] = set()
    after: list[str] = []
    size = through = 0
    for line, own in itertools.groupby(rows, key=lambda row: row.line):
        for row in own:
            full = len(held) == most or (held and size + _size(row) > MOST_BYTES)
            if full or row.passage.id in ids:
                yield FeedBatch(tuple(held), through, tuple(after))
                held, ids, after, size = [], set(), [], 0
            held.append(row)
            ids.add(row.passage.id)
            size += _size(row)
        through = line
        if documents:
            after.append(following(held[-1].passage.id))
    if held:
        yield FeedBatch(tuple(held), through, tuple(after))


def document_deletions(rows: Iterable[Row], most: int) -> Iterator[FeedBatch]:
    """The deletion of documents with all passages that were cut from them, `most` at a time."""
    left = iter(rows)
    while some := list(itertools.islice(left, most)):
        documents = tuple(dict.fromkeys(row.passage.id for row in some))
        yield FeedBatch((), some[-1].line, tuple(map(first, documents)), documents)


def first(document: str) -> str:
    """The id of the first passage that is cut from a document."""
    return f"{document}{MARK}0"


def following(name: str) -> str:
    """The id of the passage after this one, of the same document."""
    document, number = numbered(name)
    return f"{document}{MARK}{number + 1}"


def numbered(name: str) -> tuple[str, int]:
    """The document that a passage is of, and its number there; -1 if it was not cut from one."""
    document, _, number = name.rpartition(MARK)
    return (document, int(number)) if number.isdecimal() else (name, -1)


def _size(row: Row) -> int:
    passage = row.passage
    texts = (passage.id, passage.title, passage.text)
    return sum(len(each.encode()) for each in texts) + PACKED * len(row.metadata)


def _fields(row: Row) -> PassageFields:
    passage = row.passage
    return {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "metadata": json.loads(row.metadata),
        "version": row.version,
    }
