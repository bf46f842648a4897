"""What is wrong with a line of JSON lines. Pure."""

import json


def not_json(error: ValueError | RecursionError) -> str:
    """What the parser of a line said, without the number of a line: that is 1 for every line."""
    if isinstance(error, json.JSONDecodeError):
        said = f"{error.msg} at character {error.colno}"
        return f"not JSON: {said}; a line must be an object of its own, and whole"
    return f"not JSON: {error}"
