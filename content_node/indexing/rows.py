"""Passages out of files, row by row, with every bad row named.

Knows DPR's TSV and JSON lines, plain or compressed; knows nothing of databases or encoders.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.compressed import open_bytes
from winnow.domain.passage import Passage
from winnow.errors import ArtefactError


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
        ArtefactError: the file cannot be read, or its name tells no known format.

    """
    parse = _parser(path)
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            row = _row(parse, number, line)
            if row is not None:
                yield row


def _row(
    parse: Callable[[int, str], Row | BadRow | None], number: int, line: bytes
) -> Row | BadRow | None:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return BadRow(number, f"invalid UTF-8 at byte {error.start}")
    if not text.strip():
        return None
    row = parse(number, text)
    return _checked(row) if isinstance(row, Row) else row


def _checked(row: Row) -> Row | BadRow:
    passage = row.passage
    if not passage.id:
        return BadRow(row.line, "empty id")
    if not passage.text.strip():
        return BadRow(row.line, f"empty text (id {passage.id})")
    try:
        f"{passage.id}{passage.title}{passage.text}".encode()
    except UnicodeEncodeError:
        return BadRow(row.line, f"lone surrogate, not valid Unicode (id {passage.id})")
    return row


def _parser(path: Path) -> Callable[[int, str], Row | BadRow | None]:
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".json", ".ndjson")):
        return _json
    if name.endswith((".tsv", ".txt")):
        return _tsv
    raise ArtefactError(
        f"{path}: cannot tell the format; name it .tsv (id, text, title) or .jsonl "
        "(id, title, text, metadata), with .gz or .zst behind if compressed"
    )


def _tsv(number: int, line: str) -> Row | BadRow | None:
    columns = [_unquoted(column) for column in line.split("\t")]
    if number == 1 and columns[0].lower() == "id":
        return None
    if len(columns) != 3:  # noqa: PLR2004
        return BadRow(number, f"{len(columns)} columns, expected 3: id, text, title")
    return Row(number, Passage(columns[0], columns[2], columns[1]), "{}")


def _unquoted(column: str) -> str:
    """Undoes CSV quoting, which DPR's own file has; other quotes are text."""
    inner = column[1:-1]
    quoted = len(column) > 1 and column[0] == column[-1] == '"'
    if quoted and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return column


def _json(number: int, line: str) -> Row | BadRow:
    try:
        value = json.loads(line)
    except ValueError as error:
        return BadRow(number, f"not JSON: {error}")
    except RecursionError:
        return BadRow(number, "not JSON that can be read: nested too deeply")
    if not isinstance(value, dict):
        return BadRow(number, f"expected a JSON object, found {type(value).__name__}")
    return _of_object(number, value)


def _of_object(number: int, value: dict[str, Any]) -> Row | BadRow:
    identifier = value.get("id")
    if isinstance(identifier, int):
        identifier = str(identifier)
    fields = {"id": identifier, "title": value.get("title", ""), "text": value.get("text")}
    for name, field in fields.items():
        if not isinstance(field, str):
            return BadRow(number, f"{name} is missing or not a string")
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        return BadRow(number, f"metadata is {type(metadata).__name__}, expected an object")
    passage = Passage(str(fields["id"]), str(fields["title"]), str(fields["text"]))
    return Row(number, passage, json.dumps(metadata))
