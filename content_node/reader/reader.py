"""Reading one passage for one question.

Prepare, run and decode are files of their own; here they are put together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from content_node.reader.decode import best_span
from content_node.reader.prepare import Window, prepare
from content_node.shard.store import StoredPassage
from winnow.bundle import Bundle
from winnow.bundle.manifest import ReaderEntry, ScoreEntry
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.inference.runtime import PLAIN, InferenceOptions, open_session
from winnow.inference.session import Session, model_inputs
from winnow.inference.stop import Stop
from winnow.text.tokenizer import SpecialTokens
from winnow.text.words import whole_words

OUTPUTS = ["start_logits", "end_logits", "relevance_logit"]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A span of passage tokens, with the figures that decide."""

    first: int
    last: int
    span: float
    relevance: float


class Reader:
    """A reading model with the bundle's rules around it. Safe to use from several threads."""

    def __init__(
        self, session: Session, special: SpecialTokens, entry: ReaderEntry, score: ScoreEntry
    ) -> None:
        self._session, self._special = session, special
        self._entry, self._score = entry, score

    def read(
        self,
        question: Sequence[int],
        stored: StoredPassage,
        hit: Hit,
        max_answer_tokens: int,
        stop: Stop | None = None,
    ) -> Reading:
        """The best span of a passage that was found as `hit`. `question` are token ids without
        special tokens.

        A passage without a span (no tokens) gets an empty one at 0 and a score of minus infinity.

        Raises:
            StoppedError: `stop` was set before all of it was read.

        """
        parts = prepare(question, stored.title_ids, stored.tokens.ids, self._special, self._entry)
        candidates = [self._window(part, max_answer_tokens, stop) for part in parts]
        scores = [
            combine(self._score, each.relevance, each.span, hit.distance) for each in candidates
        ]
        score, best = max(zip(scores, candidates, strict=True), key=lambda pair: pair[0])
        start, end = self._characters(stored, best)
        return Reading(
            stored.passage,
            start,
            end,
            score,
            best.relevance,
            best.span,
            hit.distance,
            hit.hybrid_distance,
            hit.words,
        )

    def _window(self, window: Window, max_answer_tokens: int, stop: Stop | None) -> _Candidate:
        inputs = model_inputs(window.ids, window.types)
        start, end, relevance = self._session.run(inputs, stop)
        inside = slice(window.place, window.place + window.length)
        span = best_span(start[0][inside], end[0][inside], max_answer_tokens)
        if span is None:
            return _Candidate(0, -1, float("-inf"), float(relevance[0]))
        moved = window.first
        return _Candidate(span.first + moved, span.last + moved, span.score, float(relevance[0]))

    def _characters(self, stored: StoredPassage, span: _Candidate) -> tuple[int, int]:
        if span.last < span.first:
            return 0, 0
        offsets = stored.tokens.offsets
        return whole_words(stored.passage.text, offsets[span.first][0], offsets[span.last][1])


def combine(weights: ScoreEntry, relevance: float, span: float, distance: float) -> float:
    """The score that answers are ranked by, over all shards.

    Minus infinity where there is no span, whatever it weighs: zero times infinity is no number.
    """
    if span == float("-inf"):
        return span
    return weights.relevance * relevance + weights.span * span + weights.distance * distance


def open_reader(
    bundle: Bundle,
    special: SpecialTokens,
    options: InferenceOptions = PLAIN,
    max_tokens: int | None = None,
) -> Reader:
    """The bundle's reader; raises ArtefactError if it cannot be opened.

    `max_tokens` cuts passages into shorter windows than the bundle does.
    """
    entry = bundle.manifest.reader
    session = open_session(bundle.reader, OUTPUTS, entry.precision, options)
    shorter = min(max_tokens or entry.max_tokens, entry.max_tokens)
    entry = entry.model_copy(update={"max_tokens": shorter})
    return Reader(session, special, entry, bundle.manifest.score)
