"""Cuts tokenised texts into the windows that are read one by one. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.domain.passage import Passage
from winnow.domain.text_reading import TextToRead
from winnow.reading.model import ReadingModel
from winnow.reading.stored_passage import StoredPassage
from winnow.stateless.reading.tokenising import TokenisedText
from winnow.text.tokenizer import Tokens

_MARGIN = 500
"""Characters of the text before and after a window, into which a span may be extended.

Without a limit, the extension of a span could take time that grows with the length of the text.
"""
_WINDOW_BYTES = 800
"""Number of UTF-8 bytes that usually fit into a window, for an estimate.

In scripts whose characters have several bytes, tokens have fewer characters.
"""


@dataclass(frozen=True, slots=True)
class TextWindow:
    """A window of a text, which a thread reads at once."""

    index: int
    """Number of the text in the request."""
    start: int
    """Offset of the passage's text in the text, in code points."""
    passage: StoredPassage
    """The tokens of the window, and the part of the text around them."""

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens of the title and of the window."""
        return (*self.passage.title_ids, *self.passage.tokens.ids)


def windows_of(
    question: Sequence[int], texts: Sequence[TokenisedText], model: ReadingModel, tenant: str = ""
) -> list[TextWindow]:
    """Returns the windows of all texts, the longest first.

    So threads that end one after the other end at nearly the same time. `tenant` is that of the
    caller.
    """
    found = [
        window
        for index, text in enumerate(texts)
        for window in _windows(
            index, text, model.window_ranges(question, text.title_ids, len(text.tokens)), tenant
        )
    ]
    return sorted(found, key=lambda window: -len(window.passage.tokens))


def estimated_windows(texts: Sequence[TextToRead]) -> int:
    """Estimates the number of windows of texts before they are tokenised."""
    return sum(1 + _utf8_bytes(each.text) // _WINDOW_BYTES for each in texts)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _windows(
    index: int, text: TokenisedText, ranges: Sequence[tuple[int, int]], tenant: str
) -> Iterator[TextWindow]:
    tokens, title, whole = text.tokens, text.title_ids, text.text.text
    if len(ranges) == 1:
        passage = StoredPassage(Passage("", "", whole), title, tokens, tenant=tenant)
        yield TextWindow(index, 0, passage)
        return
    for first, last in ranges:
        offsets = tokens.offsets[first:last]
        start = max(offsets[0][0] - _MARGIN, 0)
        part = whole[start : offsets[-1][1] + _MARGIN]
        own = Tokens(tokens.ids[first:last], tuple((a - start, b - start) for a, b in offsets))
        passage = StoredPassage(Passage("", "", part), title, own, tenant=tenant)
        yield TextWindow(index, start, passage)
