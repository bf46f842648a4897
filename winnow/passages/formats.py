"""Parses lines of DPR's TSV or of JSON into passages, without validating them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from winnow.domain.write import FedPassage
from winnow.errors import ArtefactError
from winnow.files.json_lines import describe_json_error, json_type
from winnow.passages.validation import MAX_VERSION
from winnow.quoting import many, shortened


class RowError(ValueError):
    """Raised for a line that is not a passage; the message says why."""


Parser = Callable[[int, str], FedPassage | None]
"""Parses a line, given its number and text. Returns None for a header.

Raises RowError if the line is not a passage, or ArtefactError if it is a header whose columns are
in the wrong order.
"""

_HEADER = ["id", "text", "title"]
_COLUMNS = len(_HEADER)


def parser(path: Path) -> Parser:
    """Returns the parser for the extension of `path`; raises ArtefactError if it is unknown."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".json", ".ndjson")):
        return _json
    if name.endswith((".tsv", ".txt")):
        return _tsv
    raise ArtefactError(
        f"{path}: unknown format; name the file .tsv (id, text, title) or .jsonl "
        "(id, title, text, metadata), followed by .gz or .zst if compressed"
    )


def id_parser(path: Path) -> Parser:
    """Returns a parser that reads only ids, versions and tenants, for deletions."""
    return _deletion_of_json_line if parser(path) is _json else _deletion_of_tsv_line


def _deletion_of_tsv_line(number: int, line: str) -> FedPassage | None:
    identifier = _unquoted(line.split("\t", maxsplit=1)[0])
    if number == 1 and identifier.strip().lower() == _HEADER[0]:
        return None
    return FedPassage(id=identifier, title="", text="")


def _deletion_of_json_line(_number: int, line: str) -> FedPassage:
    value = _object(line)
    identifier = _identifier(value)
    if identifier is None:
        raise _not_a_string_error("id", value)
    return FedPassage(
        id=identifier,
        title="",
        text="",
        version=_version(value.get("version")),
        tenant=_tenant(value.get("tenant")),
    )


def _tsv(number: int, line: str) -> FedPassage | None:
    columns = [_unquoted(column) for column in line.split("\t")]
    if number == 1 and _is_header([column.strip().lower() for column in columns]):
        return None
    if len(columns) != _COLUMNS:
        raise RowError(
            f"{many(len(columns), 'column')}, expected {_COLUMNS}, separated by tabs: id, text, "
            "title"
        )
    return FedPassage(id=columns[0], title=columns[2], text=columns[1])


def _is_header(names: list[str]) -> bool:
    """Returns whether the columns are a header; raises ArtefactError if their order is wrong."""
    if sorted(names) == _HEADER and names != _HEADER:
        raise ArtefactError(
            f"the header has the columns {', '.join(names)}: put them in the order "
            f"{', '.join(_HEADER)}"
        )
    return names[0] == "id"


def _unquoted(column: str) -> str:
    """Removes CSV quoting, which DPR's own file has. Other quotes are part of the text."""
    inner = column[1:-1]
    quoted = len(column) > 1 and column[0] == column[-1] == '"'
    if quoted and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return column


def _json(_number: int, line: str) -> FedPassage:
    return _of_object(_object(line))


def _object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except ValueError as error:
        raise RowError(describe_json_error(error)) from error
    except RecursionError as error:
        raise RowError("not JSON that can be parsed: it is nested too deeply") from error
    if not isinstance(value, dict):
        raise RowError(f"expected a JSON object, found {json_type(value)}")
    return value


def _refuse_constant(name: str) -> None:
    """Refuses NaN and Infinity, which Python's parser accepts although JSON has neither."""
    raise ValueError(f"{name} is not a JSON number")


def _identifier(value: dict[str, Any]) -> str | None:
    identifier = value.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        identifier = str(identifier)
    return identifier if isinstance(identifier, str) else None


def _not_a_string_error(name: str, value: dict[str, Any]) -> RowError:
    if name not in value:
        return RowError(
            f"{name} is missing; the fields are: {shortened(', '.join(value)) or '(none)'}"
        )
    return RowError(f"{name} is {json_type(value[name])}, expected a string")


def _of_object(value: dict[str, Any]) -> FedPassage:
    fields = {"id": _identifier(value), "title": value.get("title", ""), "text": value.get("text")}
    for name, field in fields.items():
        if not isinstance(field, str):
            raise _not_a_string_error(name, value)
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise RowError(f"metadata is {json_type(metadata)}, expected an object")
    return FedPassage(
        id=str(fields["id"]),
        title=str(fields["title"]),
        text=str(fields["text"]),
        metadata=metadata,
        version=_version(value.get("version")),
        tenant=_tenant(value.get("tenant")),
    )


def _tenant(value: Any) -> str:
    """Returns the tenant of a row; empty if it names none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str | None):
        raise RowError(f"tenant is {json_type(value)}, expected a string")
    return value or ""


def _version(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= MAX_VERSION):
        raise RowError(
            f"version is {shortened(json.dumps(value))}, expected an integer, 0 to {MAX_VERSION}"
        )
    return value
