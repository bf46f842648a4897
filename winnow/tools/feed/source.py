"""Rows of a file or of standard input, for storing or for deleting."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from winnow.domain.passage import Passage
from winnow.files.compressed import open_bytes
from winnow.passages.checks import check_id, check_passage
from winnow.passages.formats import identified, parser
from winnow.passages.rows import BadRow, Row, rows_of

STDIN = Path("-")


def rows(
    path: Path, form: str | None, cut: bool, delete: bool, past: int = 0
) -> Iterator[Row | BadRow]:
    """Every row after the line `past`.

    Args:
        path: `-` for standard input.
        form: `jsonl` or `tsv`; None to tell it by the name.
        cut: whether rows are raw documents.
        delete: whether rows need no more than an id.
        past: lines to pass over.

    Raises:
        ArtefactError: it cannot be read, or its name tells no known format.

    """
    known = path if form is None else Path(f"rows.{form}")
    if path == STDIN and form is None:
        known = Path("rows.jsonl")
    parse = identified(known) if delete and not cut else parser(known)
    check = _check_id if delete else check_passage
    with _opened(path) as stream:
        yield from (row for row in rows_of(stream, parse, cut, check) if row.line > past)


def _check_id(passage: Passage) -> None:
    check_id(passage.id)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path == STDIN:
        # not sys.stdin: a thread that reads it when the process ends would make that a crash
        with os.fdopen(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield stream
    else:
        with open_bytes(path) as stream:
            yield stream
