"""A passage's metadata as filters see it: named fields, each with any number of values. Pure.

An object in an object is named by its path: `{"author": {"name": "x"}}` has the field
`author.name`. A list gives its field several values. `null` gives none. All numbers are in double
precision, as on the wire; NaN is not a value.
"""

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

LONGEST_NAME = 200
"""Most characters of a field's name; longer names are ignored."""
Value = str | float | bool
Fields = Mapping[str, Sequence[Value]]
"""The values of each field, at least one."""


class ValueKind(IntEnum):
    """Types of values. Values of different kinds are never equal, and have no order."""

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
    found: dict[str, list[Value]] = {}
    waiting: list[tuple[str, Any]] = list(metadata.items())
    while waiting:
        name, value = waiting.pop()
        if value is None or len(name) > LONGEST_NAME:
            continue
        if isinstance(value, dict):
            waiting += [(f"{name}.{inner}", each) for inner, each in value.items()]
        elif isinstance(value, list):
            waiting += [(name, each) for each in value]
        elif (plain := _plain(value)) is not None:
            found.setdefault(name, []).append(plain)
    return found


def _plain(value: str | float) -> Value | None:
    if isinstance(value, str | bool):
        return value
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of doubles
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number
