"""Extends spans of a text to whole words, numbers and graphemes. Pure."""

import unicodedata

_IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2FA20),
)
"""Code points of ideographs, each of which is a word, as in BERT's tokenizer."""


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Extends the span [start, end) so that it splits no word, number or grapheme."""
    while 0 < start < len(text) and _joined(text, start):
        start -= 1
    while 0 < end < len(text) and _joined(text, end):
        end += 1
    return start, end


def _joined(text: str, index: int) -> bool:
    """Returns whether the characters at `index - 1` and `index` belong to one word."""
    before, after = text[index - 1], text[index]
    if _extends(after) or before == "\u200d":
        return True
    if _extends(before) and after.isalnum():
        return True
    if before.isalnum() and after.isalnum():
        return not (_is_ideograph(before) or _is_ideograph(after))
    return _inside_number(text, index)


def _extends(character: str) -> bool:
    """Returns whether a character, such as a mark or joiner, continues the one before it."""
    return character == "\u200d" or unicodedata.category(character).startswith("M")


def _inside_number(text: str, index: int) -> bool:
    """Returns whether the character at `index - 1` or `index` separates digits, as in 2,700."""
    for separator in (index - 1, index):
        if 0 < separator < len(text) - 1 and text[separator] in ".,":
            return text[separator - 1].isdigit() and text[separator + 1].isdigit()
    return False


def _is_ideograph(character: str) -> bool:
    return any(ord(character) in block for block in _IDEOGRAPHS)
