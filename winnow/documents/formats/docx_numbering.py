"""Numbers of list items and headings, which Word files define apart from the text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from winnow.documents.formats import office
from winnow.documents.formats.archive import DocumentArchive

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = f"{_W}val"
_NUMBERING = "word/numbering.xml"
_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_MAX_NUMBER = 10_000
"""Limit of numbers; files could state any number of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    format: str = "bullet"
    text: str = ""
    start: int = 1


class ListNumbering:
    """The lists of a file, with the last number of each level."""

    def __init__(self, archive: DocumentArchive) -> None:
        root = office.part(archive, _NUMBERING) if _NUMBERING in archive else Element("none")
        self._levels: Mapping[str, Mapping[int, _Level]] = {
            each.get(f"{_W}abstractNumId", ""): dict(map(_level, each.findall(f"{_W}lvl")))
            for each in root.iter(f"{_W}abstractNum")
        }
        lists = list(root.iter(f"{_W}num"))
        self._definitions = {each.get(f"{_W}numId", ""): _definition(each) for each in lists}
        self._restarts = {each.get(f"{_W}numId", ""): _restarts(each) for each in lists}
        self._last: dict[str, dict[int, int]] = {}  # by definition and level

    def has(self, list_id: str) -> bool:
        """Returns whether there is a list."""
        return list_id in self._definitions

    def next_number(self, list_id: str, level: int) -> str:
        """Returns the number of the next item, such as `2.1`; empty for bullets."""
        definition = self._definitions[list_id]
        last = self._last.setdefault(definition, {})
        # the first item of a list may restart the numbers of its definition
        last.update({at: start - 1 for at, start in self._restarts.pop(list_id, {}).items()})
        levels = self._levels.get(definition, {})
        own = levels.get(level, _Level())
        last[level] = min(last.get(level, own.start - 1) + 1, _MAX_NUMBER)
        for deeper in [each for each in last if each > level]:
            del last[deeper]
        if own.format in ("bullet", "none"):
            return ""

        def shown(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            inner = levels.get(at, _Level())
            return _formatted(last.get(at, inner.start), inner.format)

        return _PLACE.sub(shown, own.text)


def _level(element: Element) -> tuple[int, _Level]:
    start = _child(element, "start")
    return _number(element.get(f"{_W}ilvl", "0")), _Level(
        format=_child(element, "numFmt") or "decimal",
        text=_child(element, "lvlText"),
        start=_number(start) if start else 1,
    )


def _definition(element: Element) -> str:
    return _child(element, "abstractNumId")


def _restarts(element: Element) -> dict[int, int]:
    """Returns the first numbers that a list gives to levels of its definition."""
    return {
        _number(each.get(f"{_W}ilvl", "0")): _number(_child(each, "startOverride"))
        for each in element.findall(f"{_W}lvlOverride")
        if _child(each, "startOverride")
    }


def _child(element: Element, name: str) -> str:
    child = element.find(f"{_W}{name}")
    return child.get(_VALUE, "") if child is not None else ""


def _number(text: str) -> int:
    return min(int(text), _MAX_NUMBER) if text.isascii() and text.isdecimal() else 0


def _formatted(number: int, name: str) -> str:
    """Returns a number in one of Word's formats; in digits if the format is an unusual one."""
    if number > 0 and name in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters if name == "lowerLetter" else letters.upper()
    if name in ("lowerRoman", "upperRoman"):
        digits = ""
        for value, letter in _ROMAN:
            digits += letter * (number // value)
            number %= value
        return digits if name == "lowerRoman" else digits.upper()
    return str(number)
