"""Finds where words of a text begin and end. Pure.

Tokens are parts of words, but people are shown whole words, numbers and graphemes.
"""

import unicodedata

_IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2FA20),
)
"""Characters that are written without spaces: each is a token, as in BERT's tokenizer."""


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Grows the characters [start, end) of `text` until no word, number or grapheme is cut."""
    while 0 < start < len(text) and _joined(text, start):
        start -= 1
    while 0 < end < len(text) and _joined(text, end):
        end += 1
    return start, end


def _joined(text: str, place: int) -> bool:
    """Whether the characters on both sides of `place` belong to one word."""
    before, after = text[place - 1], text[place]
    if _extends(after) or before == "\u200d":
        return True
    if _extends(before) and after.isalnum():
        return True
    if before.isalnum() and after.isalnum():
        return not (_is_ideograph(before) or _is_ideograph(after))
    return _inside_number(text, place)


def _extends(character: str) -> bool:
    """Marks, variation selectors and joiners continue the character before them."""
    return character == "\u200d" or unicodedata.category(character).startswith("M")


def _inside_number(text: str, place: int) -> bool:
    """Whether a separator of digits stands at `place` or before it: 2,700 is one number."""
    for separator in (place - 1, place):
        if 0 < separator < len(text) - 1 and text[separator] in ".,":
            return text[separator - 1].isdigit() and text[separator + 1].isdigit()
    return False


def _is_ideograph(character: str) -> bool:
    return any(ord(character) in block for block in _IDEOGRAPHS)
