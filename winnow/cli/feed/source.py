"""Rows of a file or of standard input, for storing or for deleting."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.files.compressed import open_bytes
from winnow.passages.cutting import MARK
from winnow.passages.formats import id_parser, parser
from winnow.passages.rows import BadRow, Row, Violations, rows_of
from winnow.passages.validation import deletion_violations, passage_violations

STDIN = Path("-")
_GREATEST = 99_999
"""The number of a passage of a document that the length of its id is checked with."""


def rows(
    path: Path, form: str | None, cut: bool, delete: bool, past: int = 0
) -> Iterator[Row | BadRow]:
    """Every row after the line `past`, checked as a front node checks it.

    Args:
        path: `-` for standard input.
        form: `jsonl` or `tsv`; None if the name tells it.
        cut: whether rows are raw documents, to be cut into passages unless they are deleted.
        delete: whether rows need no more than an id.
        past: lines to pass over.

    Raises:
        ArtefactError: it cannot be read, or its name tells no known format.

    """
    known = path if form is None else Path(f"rows.{form}")
    if path == STDIN and form is None:
        known = Path("rows.jsonl")
    parse = id_parser(known) if delete else parser(known)
    violations: Violations = passage_violations
    if delete:
        violations = _document_violations if cut else _deletion_violations
    with _opened(path) as stream:
        for row in rows_of(stream, parse, cut and not delete, violations):
            if row.line > past:
                yield row


def _deletion_violations(row: FedPassage) -> Iterator[Violation]:
    return deletion_violations(Deletion(row.id, row.version))


def _document_violations(row: FedPassage) -> Iterator[Violation]:
    # an empty id stays empty; else the ids of the document's passages have to be short enough
    name = f"{row.id}{MARK}{_GREATEST}" if row.id.strip() else row.id
    yield from deletion_violations(Deletion(name))
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
