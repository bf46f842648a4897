"""Rows of a file in batches, each of which is one request. Pure."""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from winnow.client import PassageFields
from winnow.passages.cutting import MARK
from winnow.passages.rows import Row

MOST_BYTES = 700_000
"""Bytes of the texts of a request in UTF-8; a message has at most 1 MB."""
PACKED = 4
"""The most bytes of a message for a character of metadata as JSON: `1, ` takes eleven."""


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """The rows of one request, and the deletions that follow it."""

    rows: tuple[Row, ...]
    through: int
    """The last line that ends in this batch, or in an earlier one."""
    after: tuple[str, ...] = ()
    """The id after the last passage of each document that ends in the batch. Passages from there on
    are deleted: the document may have been longer before.
    """
    documents: tuple[str, ...] = ()
    """Documents that are deleted; `after` has the first passage of each."""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(row.passage.id for row in self.rows)

    def fields(self) -> list[PassageFields]:
        return [_fields(row) for row in self.rows]


def batches(rows: Iterable[Row], most: int, documents: bool = False) -> Iterator[FeedBatch]:
    """The rows in their order, up to `most` at a time.

    An id comes once in a batch. Passages that a document no longer has are deleted after its batch,
    and a later line may store them again. `documents`: whether the rows of a line are one document
    that was cut.
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
    """Deletions of documents with all passages that were cut from them, `most` at a time."""
    left = iter(rows)
    while some := list(itertools.islice(left, most)):
        documents = tuple(dict.fromkeys(row.passage.id for row in some))
        yield FeedBatch((), some[-1].line, tuple(map(first, documents)), documents)


def first(document: str) -> str:
    """The id of the first passage that is cut from a document."""
    return f"{document}{MARK}0"


def following(name: str) -> str:
    """The id of the next passage of the same document."""
    document, number = numbered(name)
    return f"{document}{MARK}{number + 1}"


def numbered(name: str) -> tuple[str, int]:
    """The document of a passage, and the passage's number; -1 if it was not cut from a document."""
    document, _, number = name.rpartition(MARK)
    return (document, int(number)) if number.isdecimal() else (name, -1)


def _size(row: Row) -> int:
    passage = row.passage
    texts = (passage.id, passage.title, passage.text)
    return sum(len(each.encode()) for each in texts) + PACKED * len(passage.metadata)


def _fields(row: Row) -> PassageFields:
    passage = row.passage
    return {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "metadata": json.loads(passage.metadata or "{}"),
        "version": row.put.version,
    }
