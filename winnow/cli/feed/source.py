"""Reads the rows of a file or of standard input, to store or delete them."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from winnow.documents.passages import ID_SEPARATOR
from winnow.domain.write import Deletion, FedPassage
from winnow.errors import Violation
from winnow.files.compressed import open_bytes
from winnow.passages.formats import Parser, RowError, id_parser, parser
from winnow.passages.rows import BadRow, Row, Validator, parse_rows
from winnow.passages.validation import deletion_violations, passage_violations
from winnow.quoting import shortened

STDIN = Path("-")
_MAX_PASSAGE_NUMBER = 99_999
"""Largest number of a passage in its document. Ids with this number must not be too long."""


def read_rows(
    path: Path,
    form: str | None,
    cut: bool,
    delete: bool,
    skip_lines: int = 0,
    *,
    tenant: str = "",
) -> Iterator[Row | BadRow]:
    """Reads rows, and checks each with the rules of front nodes.

    Args:
        path: `-` for standard input.
        form: `jsonl` or `tsv`; None to choose by the name of the file.
        cut: whether rows are raw documents; they are cut into passages unless deleted.
        delete: whether rows are deleted, and need only an id.
        skip_lines: number of lines to skip.
        tenant: tenant of all rows; a row that names another one is a bad row.

    Raises:
        ArtefactError: the file cannot be read, or its name has no known suffix.

    """
    name = path if form is None else Path(f"rows.{form}")
    if path == STDIN and form is None:
        name = Path("rows.jsonl")
    parse = _of_tenant(id_parser(name) if delete else parser(name), tenant)
    violations: Validator = passage_violations
    if delete:
        violations = _document_violations if cut else _deletion_violations
    with _open(path) as stream:
        for row in parse_rows(stream, parse, cut and not delete, violations):
            if row.line > skip_lines:
                yield row


def _of_tenant(parse: Parser, tenant: str) -> Parser:
    """Returns a parser that refuses rows of tenants other than `tenant`."""

    def parse_row(number: int, line: str) -> FedPassage | None:
        passage = parse(number, line)
        if passage and passage.tenant not in ("", tenant):
            raise RowError(
                f"tenant is {shortened(passage.tenant)}: send the rows of each tenant by "
                "themselves, with --tenant"
            )
        return passage

    return parse_row


def _deletion_violations(row: FedPassage) -> Iterator[Violation]:
    return deletion_violations(Deletion(row.id, row.version))


def _document_violations(row: FedPassage) -> Iterator[Violation]:
    # the ids of the document's passages must be short enough; an empty id stays empty
    name = f"{row.id}{ID_SEPARATOR}{_MAX_PASSAGE_NUMBER}" if row.id.strip() else row.id
    yield from deletion_violations(Deletion(name))
    if row.version is not None:
        yield Violation("version", "is for passages: leave it out to delete a whole document")


@contextlib.contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if path == STDIN:
        # not sys.stdin: Python crashes at exit while a thread reads it
        with os.fdopen(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield stream
    else:
        with open_bytes(path) as stream:
            yield stream
