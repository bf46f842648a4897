"""Quantities as people write them: 21e6, 300ms, 16GiB."""

import math
import re

import typer

_NUMBER = r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_TIMES = {"ms": 1.0, "s": 1e3, "": 1.0}
_SIZES = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def count(option: str, text: str) -> float:
    """A number of things, at least 1: 21000000, 21e6."""
    found = _parsed(option, text, {"": 1.0}, "a number above 0, such as 21e6")
    if found < 1:
        raise typer.BadParameter(f"{text!r} is not at least 1", param_hint=option)
    return found


def milliseconds(option: str, text: str) -> float:
    """A time: 300ms, 0.3s; a bare number is in milliseconds."""
    return _parsed(option, text, _TIMES, "a time such as 300ms or 0.3s")


def size(option: str, text: str) -> float:
    """A number of bytes: 16GiB, 64GB."""
    return _parsed(option, text, _SIZES, "a size such as 16GiB or 64GB")


def _parsed(option: str, text: str, units: dict[str, float], expected: str) -> float:
    """Raises BadParameter, which names the option, if the text is no such quantity."""
    names = "|".join(sorted(units, key=len, reverse=True))
    found = re.fullmatch(rf"{_NUMBER}\s*(?P<unit>{names})", text.strip().lower())
    value = float(found["number"]) * units[found["unit"]] if found else math.nan
    if not (0 < value < math.inf):
        raise typer.BadParameter(f"{text!r} is not {expected}", param_hint=f"'{option}'")
    return value
