"""Flattens the metadata of a passage to named fields with values, for filters. Pure.

Nested objects yield paths: `{"author": {"name": "x"}}` has the field `author.name`. A list yields
several values; `null` yields no value. All numbers are doubles, as in messages; NaN is not a value.
"""

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

MAX_NAME_CHARACTERS = 200
"""Limit of characters of a field's name; fields with longer names are ignored."""
Value = str | float | bool
Fields = Mapping[str, Sequence[Value]]
"""The values of each field, at least one."""


class ValueKind(IntEnum):
    """Kind of a value. Values of different kinds are never equal, and have no order."""

    BOOLEAN = 0
    NUMBER = 1
    STRING = 2


def kind_of(value: Value) -> ValueKind:
    """Returns the kind of a value; `True` is not a number."""
    if isinstance(value, bool):
        return ValueKind.BOOLEAN
    return ValueKind.STRING if isinstance(value, str) else ValueKind.NUMBER


def fields_of(metadata: Mapping[str, Any]) -> dict[str, list[Value]]:
    """Returns the fields of a JSON object."""
    fields: dict[str, list[Value]] = {}
    pending: list[tuple[str, Any]] = list(metadata.items())
    while pending:
        name, value = pending.pop()
        if value is None or len(name) > MAX_NAME_CHARACTERS:
            continue
        if isinstance(value, dict):
            pending += [(f"{name}.{inner}", each) for inner, each in value.items()]
        elif isinstance(value, list):
            pending += [(name, each) for each in value]
        elif (scalar := _to_scalar(value)) is not None:
            fields.setdefault(name, []).append(scalar)
    return fields


def _to_scalar(value: str | float) -> Value | None:
    if isinstance(value, str | bool):
        return value
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of doubles
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number
