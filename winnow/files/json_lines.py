"""Faults of lines of JSON. Pure."""

import json
from typing import Any

_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
}


def not_json(error: ValueError | RecursionError) -> str:
    """The parser's error without the number of the line, which is 1 for every line."""
    if isinstance(error, json.JSONDecodeError):
        said = f"{error.msg.removesuffix(' at')} at character {error.colno}"
        return f"not JSON: {said}; each line must be one whole JSON object"
    return f"not JSON: {error}"


def kind(value: Any) -> str:
    """The kind of a JSON value, in words."""
    return "null" if value is None else _KINDS.get(type(value), "an object")
