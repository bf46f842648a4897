"""Rows of a file or of standard input, for storing or for deleting."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from winnow.domain.passage import Passage
from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.files.compressed import open_bytes
from winnow.passages.checks import check_id, check_legible
from winnow.passages.cutting import MARK
from winnow.passages.feeding import wrong_deletion, wrong_passage
from winnow.passages.formats import identified, parser
from winnow.passages.rows import BadRow, Row, rows_of
from winnow.quoting import shortened

STDIN = Path("-")
_GREATEST = 99_999
"""Number of a passage of a document, for the length of its id."""


def rows(
    path: Path, form: str | None, cut: bool, delete: bool, past: int = 0
) -> Iterator[Row | BadRow]:
    """Every row after the line `past`.

    Args:
        path: `-` for standard input.
        form: `jsonl` or `tsv`; None to tell it by the name.
        cut: whether rows are raw documents, to be cut into passages unless they are deleted.
        delete: whether rows need no more than an id.
        past: lines to pass over.

    Raises:
        ArtefactError: it cannot be read, or its name tells no known format.

    """
    known = path if form is None else Path(f"rows.{form}")
    if path == STDIN and form is None:
        known = Path("rows.jsonl")
    parse = identified(known) if delete else parser(known)
    check = _check_id if delete else check_legible  # a front names all else that is wrong
    wrong = _wrong_passage
    if delete:
        wrong = _wrong_document if cut else _wrong_deletion
    with _opened(path) as stream:
        for row in rows_of(stream, parse, cut and not delete, check):
            if row.line > past:
                yield row if isinstance(row, BadRow) else _checked(row, wrong(row))


def _check_id(passage: Passage) -> None:
    check_id(passage.id)


def _checked(row: Row, violations: Iterable[Violation]) -> Row | BadRow:
    """As a front node would take it: a row that it refuses is told before anything is sent."""
    why = "; ".join(f"{each.field} {each.description}" for each in violations)
    return BadRow(row.line, f"{why} (id {shortened(row.passage.id)})") if why else row


def _wrong_passage(row: Row) -> Iterable[Violation]:
    passage, metadata = row.passage, json.loads(row.metadata)
    return wrong_passage(
        FedPassage(
            id=passage.id,
            title=passage.title,
            text=passage.text,
            metadata=metadata,
            version=row.version,
        )
    )


def _wrong_deletion(row: Row) -> Iterable[Violation]:
    return wrong_deletion(Deletion(row.passage.id, row.version))


def _wrong_document(row: Row) -> Iterable[Violation]:
    yield from wrong_deletion(Deletion(f"{row.passage.id}{MARK}{_GREATEST}"))
    if row.version is not None:
        yield Violation("version", "is for passages: leave it out to delete a whole document")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path == STDIN:
        # not sys.stdin: a thread that reads it when the process ends would make that a crash
        with os.fdopen(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield stream
    else:
        with open_bytes(path) as stream:
            yield stream
