"""Writes names and values of a filter. Pure."""

import re

from winnow.filtering.fields import Value

KEYWORDS = frozenset({"and", "or", "not", "in", "exists", "true", "false"})
"""Keywords in any case; a field with such a name is written in quotes."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
WORD = re.compile(r"[^\s()=<>!,\"'\\]+")
"""A name, a keyword or a number: characters without a special meaning."""
_ALL_DIGITS = 1e15
"""Whole numbers below this are written without an exponent."""


def literal(value: Value) -> str:
    """Writes a value; the parser reads the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _in_quotes(value)
    return str(int(value)) if value.is_integer() and abs(value) < _ALL_DIGITS else repr(value)


def name(field: str) -> str:
    """Writes the name of a field, in quotes if it could be read as something else."""
    plain = WORD.fullmatch(field) and not NUMBER.fullmatch(field)
    return field if plain and field.lower() not in KEYWORDS else _in_quotes(field)


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
