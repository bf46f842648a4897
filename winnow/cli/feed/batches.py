"""Splits the rows of a file into batches. Pure.

A batch is one request to store rows, and the deletions that follow it.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

from winnow.client import PassageFields
from winnow.documents.passages import ID_SEPARATOR
from winnow.passages.rows import Row

MAX_TEXT_BYTES = 700_000
"""Maximum size of the texts of a request in UTF-8. A message may have at most 1 MB."""
BYTES_PER_CHARACTER = 4
"""Maximum bytes in a message per character of JSON metadata. The characters `1, ` take eleven."""


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """The rows of one request, and the deletions that follow it."""

    rows: tuple[Row, ...]
    last_line: int
    """The last line of the file with all of its rows in this batch or an earlier one."""
    deletion_starts: tuple[str, ...] = ()
    """For each document that ends in the batch, the id after its last passage.

    Passages from this id on are deleted: the document may have been longer before.
    """
    documents: tuple[str, ...] = ()
    """Documents to delete; `deletion_starts` has the first passage of each."""
    _: KW_ONLY
    deletions: tuple[str, ...] = ()
    """Ids of passages to delete."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the rows."""
        return tuple(row.passage.id for row in self.rows)

    def fields(self) -> list[PassageFields]:
        """The rows as arguments of `Client.put`."""
        return [_fields(row) for row in self.rows]


def batch_rows(rows: Iterable[Row], max_rows: int, documents: bool = False) -> Iterator[FeedBatch]:
    """Splits rows into batches of at most `max_rows`, in order.

    An id occurs at most once in a batch. Passages that a document no longer has are deleted after
    its batch is stored. Later lines may store passages with the same ids again.

    `documents`: whether each line is a document that was cut into the rows of this line.
    """
    pending: list[Row] = []
    ids: set[str] = set()
    starts: list[str] = []
    size = last_line = 0
    for line, own in itertools.groupby(rows, key=lambda row: row.line):
        for row in own:
            full = len(pending) == max_rows or (pending and size + _size(row) > MAX_TEXT_BYTES)
            if full or row.passage.id in ids:
                yield FeedBatch(tuple(pending), last_line, tuple(starts))
                pending, ids, starts, size = [], set(), [], 0
            pending.append(row)
            ids.add(row.passage.id)
            size += _size(row)
        last_line = line
        if documents:
            starts.append(next_passage_id(pending[-1].passage.id))
    if pending:
        yield FeedBatch(tuple(pending), last_line, tuple(starts))


def document_deletions(rows: Iterable[Row], max_documents: int) -> Iterator[FeedBatch]:
    """Splits the deletion of whole documents into batches of at most `max_documents`."""
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, max_documents)):
        documents = tuple(dict.fromkeys(row.passage.id for row in batch))
        yield FeedBatch((), batch[-1].line, tuple(map(first_passage_id, documents)), documents)


def first_passage_id(document: str) -> str:
    """The id of the first passage of a cut document."""
    return f"{document}{ID_SEPARATOR}0"


def next_passage_id(passage_id: str) -> str:
    """The id of the next passage of the same document."""
    document, number = split_passage_id(passage_id)
    return f"{document}{ID_SEPARATOR}{number + 1}"


def split_passage_id(passage_id: str) -> tuple[str, int]:
    """Splits an id into document and number; the number is -1 for a passage that was not cut."""
    document, _, number = passage_id.rpartition(ID_SEPARATOR)
    return (document, int(number)) if number.isdecimal() else (passage_id, -1)


def _size(row: Row) -> int:
    passage = row.passage
    texts = (passage.id, passage.title, passage.text)
    return sum(len(each.encode()) for each in texts) + BYTES_PER_CHARACTER * len(passage.metadata)


def _fields(row: Row) -> PassageFields:
    passage = row.passage
    return {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "metadata": json.loads(passage.metadata or "{}"),
        "version": row.put.version,
    }
