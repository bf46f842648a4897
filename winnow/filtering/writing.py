"""Writes names and values as text of a filter. Pure."""

import re

from winnow.filtering.fields import Value

KEYWORDS = frozenset({"and", "or", "not", "in", "exists", "true", "false"})
"""Keywords, in lower case. Fields with such a name need quotes."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
WORD = re.compile(r"[^\s()=<>!,\"'\\]+")
"""Matches names, keywords and numbers."""
_MIN_EXPONENT = 1e15
"""Integers of at least this magnitude are written with an exponent."""


def format_value(value: Value) -> str:
    """Writes a value so that the parser reads an equal one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _in_quotes(value)
    return str(int(value)) if value.is_integer() and abs(value) < _MIN_EXPONENT else repr(value)


def format_name(field: str) -> str:
    """Writes the name of a field, in quotes if it looks like a keyword or a number."""
    plain = WORD.fullmatch(field) and not NUMBER.fullmatch(field)
    return field if plain and field.lower() not in KEYWORDS else _in_quotes(field)


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
