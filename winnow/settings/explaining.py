"""What pydantic found wrong with settings, in the words of flags and variables. Pure."""

from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from winnow.settings.names import variable, wrong_key


def explained(table: str, fields: Iterable[str], error: ValidationError) -> str:
    """Every fault with its flag, its variable and the value that it has."""
    return "; ".join(_line(table, fields, fault) for fault in error.errors())


def _line(table: str, fields: Iterable[str], fault: ErrorDetails) -> str:
    said = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return said
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return wrong_key(name, table, fields)
    place = f"--{name.replace('_', '-')} (or {variable(table, name)})"
    if fault["type"] == "missing":
        return f"{place}: field required"
    if fault["type"] == "value_error":  # our own words, which name the value
        return f"{place}: {said}"
    return f"{place}: {said.lower()}, not {fault['input']!r}"
