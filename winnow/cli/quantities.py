"""Parses quantities of options: 21e6, 300ms, 16GiB."""

import math
import re

import typer

_NUMBER = r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_TIMES = {"ms": 1.0, "s": 1e3, "": 1.0}
_SIZES = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def parse_count(option: str, text: str) -> float:
    """Parses a number of at least 1: 21000000, 21e6."""
    number = _parse(option, text, {"": 1.0}, "a number above 0, such as 21e6")
    if number < 1:
        raise typer.BadParameter(f"{text!r} is not at least 1", param_hint=option)
    return number


def parse_milliseconds(option: str, text: str) -> float:
    """Parses a time: 300ms, 0.3s, or a number of milliseconds."""
    return _parse(option, text, _TIMES, "a time such as 300ms or 0.3s")


def parse_bytes(option: str, text: str) -> float:
    """Parses a size: 16GiB, 64GB."""
    return _parse(option, text, _SIZES, "a size such as 16GiB or 64GB")


def _parse(option: str, text: str, units: dict[str, float], expected: str) -> float:
    """Parses a number and its unit. Raises BadParameter with the name of the option."""
    names = "|".join(sorted(units, key=len, reverse=True))
    match = re.fullmatch(rf"{_NUMBER}\s*(?P<unit>{names})", text.strip().lower())
    value = float(match["number"]) * units[match["unit"]] if match else math.nan
    if not (0 < value < math.inf):
        raise typer.BadParameter(f"{text!r} is not {expected}", param_hint=f"'{option}'")
    return value
