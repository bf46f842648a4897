"""Passages out of files, row by row, with every bad row named.

Knows files, plain or compressed; knows nothing of databases or encoders.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from winnow.domain.passage import Passage
from winnow.domain.write import FedPassage, Put
from winnow.errors import Violation
from winnow.files.compressed import open_bytes
from winnow.passages.canonical import canonical
from winnow.passages.cutting import cut
from winnow.passages.formats import Parser, RowError, parser
from winnow.passages.validation import passage_violations
from winnow.quoting import shortened


@dataclass(frozen=True, slots=True)
class Row:
    """A valid passage and the line of the file that it was read from."""

    line: int
    put: Put

    @property
    def passage(self) -> Passage:
        return self.put.passage


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that cannot be a passage, and the reason."""

    line: int
    reason: str


Violations = Callable[[FedPassage], Iterable[Violation]]
"""Names every field of a row that breaks a rule."""


def read_rows(path: Path, documents: bool = False) -> Iterator[Row | BadRow]:
    """Every row of `path`, whose name tells the format (`.tsv` or `.jsonl`, `.gz`, `.zst`).

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
    violations: Violations = passage_violations,
) -> Iterator[Row | BadRow]:
    """Parses lines of any source into rows. `violations` validates each row."""
    for number, line in enumerate(lines, start=1):
        # some editors and spreadsheets begin a file with a byte order mark
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        yield from _rows(parse, number, text, documents, violations)


def _rows(
    parse: Parser, number: int, line: bytes, documents: bool, violations: Violations
) -> list[Row] | list[BadRow]:
    """The passages of a line, or one bad row if any of them is wrong; none of a blank line."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        found = parse(number, text) if text.strip() else None
    except UnicodeDecodeError as error:
        return [BadRow(number, f"invalid UTF-8 at byte {error.start}")]
    except RowError as error:
        return [BadRow(number, str(error))]
    if found is None:
        return []
    # a document without a word has no passages: its own violations are named
    passages = (list(cut(found)) if documents else []) or [found]
    for each in passages:
        if why := "; ".join(f"{wrong.field} {wrong.description}" for wrong in violations(each)):
            return [BadRow(number, f"{why} (id {shortened(each.id)})")]
    return [Row(number, canonical(each)) for each in passages]
