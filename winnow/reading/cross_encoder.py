"""The full cross-encoder: question and passage in one sequence, through all layers of one
network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.bundle.manifest import ReaderEntry
from winnow.inference.session import Inputs, Session, model_inputs
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.reading.model import (
    MIN_PASSAGE_ROOM,
    WindowLogits,
    max_question_tokens,
    split_windows,
)
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import SpecialTokens

_TYPICAL_TOKENS, _TYPICAL_QUESTION_TOKENS = 160, 12
"""Tokens of a typical input, and tokens of the question in it including special tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Input of one run: `[CLS] question [SEP] title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    types: list[int]
    offset: int
    """Index in `ids` of the first passage token."""
    first: int
    """Index in the passage of the token at `offset`."""
    length: int
    """Number of passage tokens in this window."""


class CrossEncoder:
    """A network that sees question and passage in every layer; a `ReadingModel`."""

    def __init__(self, session: Session, special: SpecialTokens, entry: ReaderEntry) -> None:
        self._session, self._special, self._entry = session, special, entry

    def window_ranges(
        self, question: Sequence[int], title: Sequence[int], tokens: int
    ) -> list[tuple[int, int]]:
        head = _head(question, title, self._special, self._entry)
        return _window_ranges(len(head), tokens, self._entry)

    def run_windows(
        self, question: Sequence[int], stored: StoredPassage, stop: StopSignal | None = None
    ) -> Iterator[WindowLogits]:
        title, text = stored.title_ids, stored.tokens.ids
        for window in build_windows(question, title, text, self._special, self._entry):
            inputs = model_inputs(window.ids, window.types)
            start, end, relevance = self._session.run(inputs, stop)
            passage = slice(window.offset, window.offset + window.length)
            yield WindowLogits(
                window.first, start[0][passage], end[0][passage], float(relevance[0])
            )


def build_windows(
    question: Sequence[int],
    title: Sequence[int],
    text: Sequence[int],
    special: SpecialTokens,
    reader: ReaderEntry,
) -> list[Window]:
    """Returns the windows that cover all of `text`, from token ids without special tokens."""
    question_type, passage_type = reader.token_types
    head = _head(question, title, special, reader)
    question_length = len(question) + 2  # with its special tokens
    windows = []
    for start, end in _window_ranges(len(head), len(text), reader):
        ids = [*head, *text[start:end], special.sep]
        types = [question_type] * question_length
        types += [passage_type] * (len(ids) - question_length)
        windows.append(
            Window(ids=ids, types=types, offset=len(head), first=start, length=end - start)
        )
    return windows


def _head(
    question: Sequence[int], title: Sequence[int], special: SpecialTokens, reader: ReaderEntry
) -> list[int]:
    """Returns the tokens before those of the passage."""
    # a long question truncates the title, so that the passage has room
    title_room = max(max_question_tokens(reader) - len(question), 0)
    kept = title[: min(MAX_TITLE_TOKENS, title_room)]
    return [special.cls, *question, special.sep, *kept, special.sep]


def _window_ranges(tokens_before: int, tokens: int, reader: ReaderEntry) -> list[tuple[int, int]]:
    """Returns the ranges of the windows of a passage, with `tokens_before` tokens before each."""
    room = max(reader.max_tokens - tokens_before - 1, MIN_PASSAGE_ROOM)
    return split_windows(tokens, room, min(reader.window_overlap, room // 2))


def typical_inputs(special: SpecialTokens, entry: ReaderEntry) -> Inputs:
    """Returns inputs of typical length, for comparing the speed of runtimes."""
    question_type, passage_type = entry.token_types
    tokens = min(_TYPICAL_TOKENS, entry.max_tokens)
    types = [question_type] * min(_TYPICAL_QUESTION_TOKENS, tokens)
    types += [passage_type] * (tokens - _TYPICAL_QUESTION_TOKENS)
    return model_inputs([special.cls] * tokens, types)
