"""What pydantic found wrong with settings, in the words of flags and variables. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from winnow.settings.names import variable, wrong_key


def explained(
    table: str, fields: Iterable[str], error: ValidationError, files: Mapping[str, Path]
) -> str:
    """Every fault with its flag, its variable and the value that it has.

    Args:
        table: the settings' table.
        fields: their names.
        error: what is wrong.
        files: the file that a value is from, by its name, for those that are from one.

    """
    return "; ".join(
        f"{files[name]}: {line}" if (name := _name(fault)) in files else line
        for fault in error.errors()
        for line in [_line(table, fields, fault)]
    )


def _name(fault: ErrorDetails) -> str:
    return str(fault["loc"][0]) if fault["loc"] else ""


def _line(table: str, fields: Iterable[str], fault: ErrorDetails) -> str:
    said = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return said
    name = _name(fault)
    if fault["type"] == "extra_forbidden":
        return wrong_key(name, table, fields)
    place = f"--{name.replace('_', '-')} (or {variable(table, name)})"
    if fault["type"] == "missing":
        return f"{place}: field required"
    if fault["type"] == "value_error":  # our own words, which name the value
        return f"{place}: {said}"
    return f"{place}: {said.lower()}, not {fault['input']!r}"
