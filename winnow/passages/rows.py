"""Passages out of files, row by row, with every bad row named.

Knows files, plain or compressed; knows nothing of databases or encoders.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from winnow.domain.passage import Passage
from winnow.files.compressed import open_bytes
from winnow.passages.checks import RowError, check_passage
from winnow.passages.formats import Parser, parser


@dataclass(frozen=True, slots=True)
class Row:
    """A passage as it stood in the file."""

    line: int
    passage: Passage
    metadata: str
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be a passage, and why."""

    line: int
    reason: str


def read_rows(path: Path) -> Iterator[Row | BadRow]:
    """Every row of `path`; the format is told by the name (`.tsv` or `.jsonl`, `.gz`, `.zst`).

    Raises:
        ArtefactError: the file cannot be read, its name tells no known format, or its header
            says that the columns have another order.

    """
    parse = parser(path)
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            # some editors and spreadsheets begin a file with a byte order mark
            row = _row(parse, number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
            if row is not None:
                yield row


def _row(parse: Parser, number: int, line: bytes) -> Row | BadRow | None:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        found = parse(number, text) if text.strip() else None
        if found is None:
            return None
        check_passage(found[0])
    except UnicodeDecodeError as error:
        return BadRow(number, f"invalid UTF-8 at byte {error.start}")
    except RowError as error:
        return BadRow(number, str(error))
    return Row(number, *found)
