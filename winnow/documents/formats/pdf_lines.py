"""Reads the lines of a PDF page from PDFium, with their place and type."""

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

_CELL_GAP = 1.6
"""Width of the space between two cells of a table, from which it is no space between words; in em.
"""
_RAISED = 0.85
"""Size of footnote marks, as a share of the size of the line: smaller digits are marks."""
_BOLD = re.compile(r"bold|black|heavy|demi|semibd|cmbx|cmssbx|sfbx", re.IGNORECASE)
_FIXED = re.compile(r"mono|courier|cmtt|sftt|typewriter|consol|inconsolata|cousine", re.IGNORECASE)
_FIXED_PITCH = 1
"""Flag of a font whose characters have one width: PDF 32000-1, table 123."""
_FONT_NAME_BYTES = 128
_SPACES = frozenset(" \t\xa0")
_MARK_FOLLOWS = frozenset(" \t\xa0,.;:)\n\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfLine:
    """A line of text. Lengths are in points, from the bottom left corner of the page."""

    text: str
    left: float
    right: float
    baseline: float
    last_baseline: float
    """Baseline of the last character, which is lower if a word was divided and goes on below."""
    size: float
    """Size of the type of the line's first character."""
    bold: bool = False
    """Whether all of the line is bold."""
    fixed: bool = False
    """Whether all of the line is in a font of one width, as code is."""
    cells: tuple[tuple[float, str], ...] = ()
    """The parts between wide spaces, each with its left edge; empty without wide spaces."""


def lines_of_page(page: "PdfTextPage") -> Sequence[PdfLine]:
    """Returns the lines of a page in PDFium's order, which is that of the file's content."""
    characters = _Characters(page)
    lines: list[PdfLine] = []
    start = 0
    codes = characters.codes
    for index in range(len(codes) + 1):
        if index == len(codes) or codes[index] in "\r\n":
            line = _line(characters, start, index)
            if line is not None:
                lines.append(line)
            start = index + 1
    return lines


def _line(characters: "_Characters", start: int, end: int) -> PdfLine | None:
    """Returns the line of the characters from `start` to `end`; None if they are blank."""
    codes = characters.codes
    printed = [index for index in range(start, end) if codes[index] not in _SPACES]
    if not printed:
        return None
    first, last = printed[0], printed[-1]
    size = characters.size(first)
    fonts = [characters.font(index) for index in {first, printed[len(printed) // 2], last}]
    cells = _cells(characters, printed, size)
    return PdfLine(
        text=" ".join(text for _, text in cells),
        left=characters.edges(first)[0],
        right=characters.edges(last)[1],
        baseline=characters.baseline(first),
        last_baseline=characters.baseline(last),
        size=size,
        bold=all(bold for bold, _ in fonts),
        fixed=all(fixed for _, fixed in fonts),
        cells=tuple(cells) if len(cells) > 1 else (),
    )


def _cells(
    characters: "_Characters", printed: Sequence[int], size: float
) -> list[tuple[float, str]]:
    """Splits a line at wide spaces; leaves out marks of footnotes."""
    codes = characters.codes
    cells: list[tuple[float, str]] = []
    parts: list[str] = []
    left = characters.edges(printed[0])[0]
    previous = printed[0]
    for index in printed:
        if index - previous > 1:
            start = characters.edges(index)[0]
            if start - characters.edges(previous)[1] > _CELL_GAP * size:
                cells.append((left, _text(parts)))
                left, parts = start, []
            else:
                parts.append(" ")
        if not characters.is_mark(index, size):
            parts.append(codes[index])
        previous = index
    return [*cells, (left, _text(parts))]


def _text(parts: Sequence[str]) -> str:
    """Joins characters. Those beyond 16 bits come as two surrogates."""
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class _Characters:
    """The characters of a page, and PDFium's calls for their properties."""

    def __init__(self, page: "PdfTextPage") -> None:
        from pypdfium2 import raw  # noqa: PLC0415 - of the extra `documents`

        self._raw: Any = raw
        self._page = page.raw
        self._rectangle = raw.FS_RECTF()
        self._matrix = raw.FS_MATRIX()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._name = ctypes.create_string_buffer(_FONT_NAME_BYTES)
        self._flags = ctypes.c_int()
        code = raw.FPDFText_GetUnicode
        count = page.count_chars()
        self.codes = "".join([chr(code(self._page, index)) for index in range(count)])

    def edges(self, index: int) -> tuple[float, float]:
        """Returns the left and the right edge of a character."""
        self._raw.FPDFText_GetLooseCharBox(self._page, index, self._rectangle)
        return self._rectangle.left, self._rectangle.right

    def baseline(self, index: int) -> float:
        """Returns the height of the line on which a character stands."""
        self._raw.FPDFText_GetCharOrigin(self._page, index, self._x, self._y)
        return self._y.value

    def size(self, index: int) -> float:
        """Returns the size of the type of a character, as it appears on the page."""
        self._raw.FPDFText_GetMatrix(self._page, index, self._matrix)
        scale = hypot(self._matrix.c, self._matrix.d) or 1.0
        return float(self._raw.FPDFText_GetFontSize(self._page, index)) * scale

    def font(self, index: int) -> tuple[bool, bool]:
        """Returns whether the font of a character is bold, and whether it has one width."""
        self._raw.FPDFText_GetFontInfo(self._page, index, self._name, _FONT_NAME_BYTES, self._flags)
        name = self._name.value.decode(errors="replace")
        fixed = bool(self._flags.value & _FIXED_PITCH or _FIXED.search(name))
        return bool(_BOLD.search(name)), fixed

    def is_mark(self, index: int, size: float) -> bool:
        """Returns whether a character is the mark of a footnote: small digits after a word."""
        codes = self.codes
        if not codes[index].isdigit() or index == 0 or codes[index - 1] in _SPACES:
            return False
        end = index
        while end < len(codes) and codes[end].isdigit():
            end += 1
        if end < len(codes) and codes[end] not in _MARK_FOLLOWS:
            return False
        begin = index
        while begin > 0 and codes[begin - 1].isdigit():
            begin -= 1
        # x² is a letter with its exponent, and 10³ a number with its one
        word = codes[max(0, begin - 3) : begin]
        is_word = (word.isalpha() and len(word) == 3) or word[-1:] in tuple('.,;:)”"')  # noqa: PLR2004
        return is_word and self.size(index) < _RAISED * size
