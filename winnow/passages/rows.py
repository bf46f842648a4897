"""Passages out of files, row by row, with every bad row named.

Knows files, plain or compressed; knows nothing of databases or encoders.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from winnow.domain.passage import Passage
from winnow.files.compressed import open_bytes
from winnow.passages.checks import RowError, check_passage
from winnow.passages.cutting import cut
from winnow.passages.formats import Parser, parser


@dataclass(frozen=True, slots=True)
class Row:
    """A passage as it stood in the file."""

    line: int
    passage: Passage
    metadata: str
    """A JSON object."""
    version: int | None = None
    """Of the passage: a write with a lower one will not replace it."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a passage, and why."""

    line: int
    reason: str


Check = Callable[[Passage], None]
"""Raises RowError if a passage is not valid."""


def read_rows(path: Path, documents: bool = False) -> Iterator[Row | BadRow]:
    """Every row of `path`; the format is told by the name (`.tsv` or `.jsonl`, `.gz`, `.zst`).

    `documents`: rows are raw documents, each of which is cut into passages.

    Raises:
        ArtefactError: the file cannot be read, its name tells no known format, or its header
            says that the columns have another order.

    """
    parse = parser(path)
    with open_bytes(path) as stream:
        yield from rows_of(stream, parse, documents)


def rows_of(
    lines: Iterable[bytes],
    parse: Parser,
    documents: bool = False,
    check: Check = check_passage,
) -> Iterator[Row | BadRow]:
    """The same of lines that come from anywhere; `check` says which passages are valid."""
    for number, line in enumerate(lines, start=1):
        # some editors and spreadsheets begin a file with a byte order mark
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        yield from _rows(parse, number, text, documents, check)


def _rows(
    parse: Parser, number: int, line: bytes, documents: bool, check: Check
) -> list[Row] | list[BadRow]:
    """The passages of a line: none if it is blank or a header. One that is wrong spoils all."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        found = parse(number, text) if text.strip() else None
        if found is None:
            return []
        passages = [found.passage]
        if documents:
            passages = list(cut(found.passage)) or passages  # what has no word is told below
        for each in passages:
            check(each)
    except UnicodeDecodeError as error:
        return [BadRow(number, f"invalid UTF-8 at byte {error.start}")]
    except RowError as error:
        return [BadRow(number, str(error))]
    return [Row(number, each, found.metadata, found.version) for each in passages]
