"""A question and a passage to the sequences that the reader runs on. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.bundle.manifest import ReaderEntry
from winnow.content_node.reader.windows import windows
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.text.tokenizer import SpecialTokens

_LEAST_ROOM = 16
_SPECIAL, _ASKED = 4, 2
"""[CLS] and three [SEP]; those around a question."""


@dataclass(frozen=True, slots=True)
class Window:
    """One run of the reader: `[CLS] question [SEP] title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    types: list[int]
    place: int
    """Where in `ids` the passage begins."""
    first: int
    """The passage token that stands there."""
    length: int
    """Passage tokens in this window."""


def longest_question(reader: ReaderEntry) -> int:
    """Tokens of a question, without special ones, that leave room for some of a passage."""
    if reader.apart is not None:
        return reader.apart.passage_position - _ASKED
    return reader.max_tokens - _SPECIAL - _LEAST_ROOM


def prepare(
    question: Sequence[int],
    title: Sequence[int],
    text: Sequence[int],
    special: SpecialTokens,
    reader: ReaderEntry,
) -> list[Window]:
    """The windows that cover all of `text`. Ids come without special tokens."""
    asked = [special.cls, *question, special.sep]
    # a title gives way to the passage where the question leaves little
    left = max(longest_question(reader) - len(question), 0)
    head = [*asked, *title[: min(MAX_TITLE_TOKENS, left)], special.sep]
    room = max(reader.max_tokens - len(head) - 1, _LEAST_ROOM)
    overlap = min(reader.window_overlap, room // 2)
    return [
        _window(asked, head, text[start:end], start, special, reader.token_types)
        for start, end in windows(len(text), room, overlap)
    ]


def _window(
    asked: Sequence[int],
    head: Sequence[int],
    part: Sequence[int],
    first: int,
    special: SpecialTokens,
    types: tuple[int, int],
) -> Window:
    ids = [*head, *part, special.sep]
    kinds = [types[0]] * len(asked) + [types[1]] * (len(ids) - len(asked))
    return Window(ids, kinds, len(head), first, len(part))
