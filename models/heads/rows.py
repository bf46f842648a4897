"""Reads labelled texts from CSV with a header or JSON lines, compressed or not.

Errors name the invalid row and the reason.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.data import DataError
from winnow.files.compressed import open_bytes
from winnow.heads.manifest import Kind
from winnow.quoting import quoted

_COMPRESSED = {".gz", ".zst"}
_LABEL_SEPARATOR = "|"
"""Separator of the labels of one text in a CSV file."""
OUTSIDE = "O"
"""BIO label of tokens outside entities."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the columns to read, and whether a text may have several labels."""

    text: str
    label: str
    multi_label: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A text and its labels."""

    text: str
    labels: tuple[str, ...]
    """Labels of the text: one, several with `multi_label`, or one per word for token heads."""
    words: tuple[tuple[int, int], ...] = ()
    """First character and one past the last of each word; empty for sequence heads."""


def read_rows(path: Path, kind: Kind, fields: Fields) -> list[Row]:
    """Returns every row of a file.

    Raises:
        DataError: the file is missing, has no rows, or has an invalid row.

    """
    parse = _parse_sequence_row if kind is Kind.SEQUENCE else _parse_token_row
    rows = []
    for number, raw in enumerate(_raw_rows(path, kind), 1):
        try:
            rows.append(parse(raw, fields))
        except _RowError as error:
            raise DataError(f"{path}, row {number}: {error}") from error
    if not rows:
        raise DataError(f"{path} has no rows: a head needs labelled texts to learn from")
    return rows


class _RowError(Exception):
    """A row is invalid."""


def _raw_rows(path: Path, kind: Kind) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise DataError(f"no file {path}: name a file of labelled texts")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    extension = suffixes[-1] if suffixes else ""
    if extension == ".csv" and kind is Kind.TOKEN:
        raise DataError(f"{path} is CSV, but token heads need JSON lines with tokens and labels")
    if extension not in (".csv", ".jsonl", ".ndjson"):
        raise DataError(
            f"{path} is neither .csv nor .jsonl (.gz and .zst may follow): name the file after its "
            "format"
        )
    with open_bytes(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        try:
            yield from (
                csv.DictReader(text, strict=True) if extension == ".csv" else _json_lines(text)
            )
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8: {error.reason}; convert the file") from error
        except csv.Error as error:
            raise DataError(f"{path} is not CSV: {error}; correct the file") from error
        except _RowError as error:
            raise DataError(f"{path}, {error}") from error


def _json_lines(stream: io.TextIOWrapper) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _RowError(f"line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise _RowError(f"line {number}: not a JSON object: {quoted(line.strip())}")
        yield row


def _parse_sequence_row(raw_row: Mapping[str, Any], fields: Fields) -> Row:
    if None in raw_row:  # DictReader collects surplus values under None
        raise _RowError("more fields than the header: put texts with commas in double quotes")
    text = _column_value(raw_row, fields.text, "--text-field")
    if not isinstance(text, str) or not text.strip():
        raise _RowError(f"{fields.text} is {quoted(str(text))}: a text is needed")
    labels = _column_value(raw_row, fields.label, "--label-field")
    if not fields.multi_label:
        if isinstance(labels, list):
            raise _RowError(f"{fields.label} is a list: set --multi-label to allow several labels")
        return Row(text, (_parse_label(labels, fields),))
    if isinstance(labels, str):
        labels = [part.strip() for part in labels.split(_LABEL_SEPARATOR) if part.strip()]
    if not isinstance(labels, list):
        raise _RowError(f"{fields.label} is {quoted(str(labels))}: a list of labels is needed")
    return Row(text, tuple(dict.fromkeys(_parse_label(each, fields) for each in labels)))


def _parse_token_row(raw_row: Mapping[str, Any], fields: Fields) -> Row:
    tokens = _column_value(raw_row, fields.text, "--text-field")
    labels = _column_value(raw_row, fields.label, "--label-field")
    for name, values in ((fields.text, tokens), (fields.label, labels)):
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise _RowError(f"{name} is {quoted(str(values))}: a list of texts is needed")
    if not tokens or not all(token.strip() for token in tokens):
        raise _RowError(f"{fields.text} has no token, or an empty token")
    if len(tokens) != len(labels):
        raise _RowError(
            f"{len(tokens)} {fields.text} but {len(labels)} {fields.label}: "
            "every token needs one label"
        )
    for label in labels:
        if label != OUTSIDE and (label[:2] not in ("B-", "I-") or not label[2:]):
            raise _RowError(f"invalid label {quoted(label)}: token labels are O, B-… and I-…")
    words, start = [], 0
    for token in tokens:
        words.append((start, start + len(token)))
        start += len(token) + 1
    return Row(" ".join(tokens), tuple(labels), tuple(words))


def _column_value(raw_row: Mapping[str, Any], name: str, option: str) -> Any:
    if raw_row.get(name) is not None:
        return raw_row[name]
    names = [key for key in raw_row if key is not None]
    columns = ", ".join(map(quoted, names)) or "none"
    if name in raw_row:
        raise _RowError(f"no value for {quoted(name)}: every row needs one")
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise _RowError(f"the only field is {columns}: separate the fields with commas")
    raise _RowError(f"no field {quoted(name)} among {columns}: name a field with {option}")


def _parse_label(value: Any, fields: Fields) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise _RowError(
            f"{fields.label} is {quoted(str(value))}, which is no label: give a non-empty text"
        )
    return value.strip()
