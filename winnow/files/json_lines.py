"""What is wrong with a line of JSON lines. Pure."""

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
    """What the parser of a line said, without the number of a line: that is 1 for every line."""
    if isinstance(error, json.JSONDecodeError):
        said = f"{error.msg.removesuffix(' at')} at character {error.colno}"
        return f"not JSON: {said}; each line must be one whole JSON object"
    return f"not JSON: {error}"


def kind(value: Any) -> str:
    """What a value out of JSON is, in words of JSON."""
    return "null" if value is None else _KINDS.get(type(value), "an object")
