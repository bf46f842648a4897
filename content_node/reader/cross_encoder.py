"""The full cross-encoder: question and passage in one sequence, through all layers of one
network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.bundle.manifest import ReaderEntry
from winnow.content_node.reader.model import LEAST_ROOM, WindowLogits, longest_question, windows
from winnow.content_node.shard.store import StoredPassage
from winnow.inference.session import Inputs, Session, model_inputs
from winnow.inference.stop import Stop
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.text.tokenizer import SpecialTokens

_USUAL, _QUESTION = 160, 12
"""Tokens of a usual input, and how many of them are the question's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One run of the reader: `[CLS] question [SEP] title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    types: list[int]
    place: int
    """Where in `ids` the passage begins."""
    first: int
    """The passage token at this place."""
    length: int
    """Number of passage tokens in this window."""


class CrossEncoder:
    """A network that sees question and passage in every layer; a `ReadingModel`."""

    def __init__(self, session: Session, special: SpecialTokens, entry: ReaderEntry) -> None:
        self._session, self._special, self._entry = session, special, entry

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        title, text = stored.title_ids, stored.tokens.ids
        for window in prepare(question, title, text, self._special, self._entry):
            inputs = model_inputs(window.ids, window.types)
            start, end, relevance = self._session.run(inputs, stop)
            inside = slice(window.place, window.place + window.length)
            yield WindowLogits(window.first, start[0][inside], end[0][inside], float(relevance[0]))


def prepare(
    question: Sequence[int],
    title: Sequence[int],
    text: Sequence[int],
    special: SpecialTokens,
    reader: ReaderEntry,
) -> list[Window]:
    """Returns the windows that cover all of `text`. Ids come without special tokens."""
    asked = [special.cls, *question, special.sep]
    # the title is cut where the question leaves little room for the passage
    left = max(longest_question(reader) - len(question), 0)
    head = [*asked, *title[: min(MAX_TITLE_TOKENS, left)], special.sep]
    room = max(reader.max_tokens - len(head) - 1, LEAST_ROOM)
    overlap = min(reader.window_overlap, room // 2)
    made = []
    for start, end in windows(len(text), room, overlap):
        ids = [*head, *text[start:end], special.sep]
        of_question, of_passage = reader.token_types
        types = [of_question] * len(asked) + [of_passage] * (len(ids) - len(asked))
        made.append(Window(ids=ids, types=types, place=len(head), first=start, length=end - start))
    return made


def usual_read(special: SpecialTokens, entry: ReaderEntry) -> Inputs:
    """Returns a made-up input of usual length, for comparing runtimes."""
    tokens, (of_question, of_passage) = min(_USUAL, entry.max_tokens), entry.token_types
    types = [of_question] * min(_QUESTION, tokens) + [of_passage] * (tokens - _QUESTION)
    return model_inputs([special.cls] * tokens, types)
