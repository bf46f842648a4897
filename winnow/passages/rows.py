"""Reads passages from plain or compressed files, and reports every bad row."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from winnow.documents.passages import raw_document_passages
from winnow.domain.passage import Passage
from winnow.domain.tenant import tenant_problem
from winnow.domain.write import FedPassage, Put
from winnow.errors import Violation
from winnow.files.compressed import open_bytes
from winnow.passages.canonical import canonical
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
    """The number of a line that is not a valid passage, and the reason."""

    line: int
    reason: str


Validator = Callable[[FedPassage], Iterable[Violation]]
"""Returns the violations of a row."""


def read_rows(
    path: Path, documents: bool = False, *, tenants: bool = False
) -> Iterator[Row | BadRow]:
    """Reads all rows of a `.tsv` or `.jsonl` file, which may end in `.gz` or `.zst`.

    `documents`: whether rows are raw documents, to be cut into passages. `tenants`: whether each
    row must have a tenant; otherwise no row may have one.

    Raises ArtefactError if the file cannot be read, its extension is unknown, or the columns of its
    header are in the wrong order.
    """
    parse = parser(path)
    with open_bytes(path) as stream:
        own = _with_tenant(parse) if tenants else _refuse_tenant(parse)
        yield from parse_rows(stream, own, documents, tenants=tenants)


def _with_tenant(parse: Parser) -> Parser:
    """Returns a parser that refuses rows without a tenant."""

    def parse_row(number: int, line: str) -> FedPassage | None:
        passage = parse(number, line)
        if passage is not None and (problem := tenant_problem(passage.tenant)):
            raise RowError(f"tenant {problem}" if passage.tenant else "tenant is missing")
        return passage

    return parse_row


def _refuse_tenant(parse: Parser) -> Parser:
    """Returns a parser that refuses rows with a tenant: every caller could read their passages."""

    def parse_row(number: int, line: str) -> FedPassage | None:
        passage = parse(number, line)
        if passage is not None and passage.tenant:
            raise RowError(
                f"tenant is {shortened(passage.tenant)}, but the index gets no tenants: add "
                "--tenants, or remove the field"
            )
        return passage

    return parse_row


def parse_rows(
    lines: Iterable[bytes],
    parse: Parser,
    documents: bool = False,
    validate: Validator = passage_violations,
    *,
    tenants: bool = False,
) -> Iterator[Row | BadRow]:
    """Parses and validates lines of any source. `tenants`: whether to keep the tenants of rows."""
    parse = parse if tenants else _without_tenant(parse)
    for number, line in enumerate(lines, start=1):
        # some editors and spreadsheets begin a file with a byte order mark
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        yield from _rows(parse, number, text, documents, validate)


def _without_tenant(parse: Parser) -> Parser:
    """Returns a parser that ignores the tenants of rows."""

    def parse_row(number: int, line: str) -> FedPassage | None:
        passage = parse(number, line)
        return replace(passage, tenant="") if passage and passage.tenant else passage

    return parse_row


def _rows(
    parse: Parser, number: int, line: bytes, documents: bool, validate: Validator
) -> list[Row] | list[BadRow]:
    """Returns the passages of a line, or one bad row if the line or any passage is invalid."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        parsed = parse(number, text) if text.strip() else None
    except UnicodeDecodeError as error:
        return [BadRow(number, f"invalid UTF-8 at byte {error.start}")]
    except RowError as error:
        return [BadRow(number, str(error))]
    if parsed is None:
        return []
    # a document without words has no passages: validating the document itself reports why
    passages = (list(raw_document_passages(parsed)) if documents else []) or [parsed]
    for passage in passages:
        reason = "; ".join(f"{each.field} {each.description}" for each in validate(passage))
        if reason:
            return [BadRow(number, f"{reason} (id {shortened(passage.id)})")]
    return [Row(number, canonical(passage)) for passage in passages]
