"""Describes errors in JSON Lines files. Pure."""

import json
from typing import Any

_TYPE_NAMES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
}


def describe_json_error(error: ValueError | RecursionError) -> str:
    """Describes a JSON parser's error. Omits the line number, because the parser gets one line."""
    if isinstance(error, json.JSONDecodeError):
        message = f"{error.msg.removesuffix(' at')} at character {error.colno}"
        return f"not JSON: {message}; each line must be one whole JSON object"
    return f"not JSON: {error}"


def json_type(value: Any) -> str:
    """Returns the type of a JSON value in words, such as `a string`."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), "an object")
