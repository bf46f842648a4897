"""Question and passage in one sequence, through all layers of one network."""

from collections.abc import Iterator, Sequence

from winnow.bundle.manifest import ReaderEntry
from winnow.content_node.reader.model import WindowLogits
from winnow.content_node.reader.prepare import prepare
from winnow.content_node.shard.store import StoredPassage
from winnow.inference.session import Inputs, Session, model_inputs
from winnow.inference.stop import Stop
from winnow.text.tokenizer import SpecialTokens

OUTPUTS = ["start_logits", "end_logits", "relevance_logit"]
_USUAL, _QUESTION = 160, 12
"""Tokens of a usual read, and how many of them are the question's."""


class WholeModel:
    """A network that sees question and passage in every layer."""

    def __init__(self, session: Session, special: SpecialTokens, entry: ReaderEntry) -> None:
        self._session, self._special, self._entry = session, special, entry

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        """Reads each window of a passage; see `ReadingModel`."""
        title, text = stored.title_ids, stored.tokens.ids
        for window in prepare(question, title, text, self._special, self._entry):
            inputs = model_inputs(window.ids, window.types)
            start, end, relevance = self._session.run(inputs, stop)
            inside = slice(window.place, window.place + window.length)
            yield WindowLogits(window.first, start[0][inside], end[0][inside], float(relevance[0]))


def usual_read(special: SpecialTokens, entry: ReaderEntry) -> Inputs:
    """A made-up input of a usual length, to compare runtimes at."""
    tokens, (asked, told) = min(_USUAL, entry.max_tokens), entry.token_types
    types = [asked] * min(_QUESTION, tokens) + [told] * (tokens - _QUESTION)
    return model_inputs([special.cls] * tokens, types)
