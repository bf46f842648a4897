"""Reads one passage for one question: windows to logits, logits to spans, spans to an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.bundle import Bundle
from winnow.bundle.manifest import ScoreEntry
from winnow.content_node.reader.cross_encoder import CrossEncoder, usual_read
from winnow.content_node.reader.decode import best_span
from winnow.content_node.reader.lower_layers import open_lower_layers
from winnow.content_node.reader.model import OUTPUTS, ReadingModel, WindowLogits
from winnow.content_node.reader.split_reader import SplitReader
from winnow.content_node.shard.store import StoredPassage
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import ArtefactError
from winnow.inference.runtime import PLAIN, InferenceOptions, open_session
from winnow.inference.stop import Stop
from winnow.text.tokenizer import SpecialTokens
from winnow.text.words import whole_words


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A span of passage tokens, with the figures that rank it."""

    first: int
    last: int
    span: float
    relevance: float


class Reader:
    """A reading model with the bundle's scoring. Safe to use from several threads."""

    def __init__(self, model: ReadingModel, score: ScoreEntry) -> None:
        self._model, self._score = model, score

    def read(
        self,
        question: Sequence[int],
        stored: StoredPassage,
        hit: Hit,
        max_answer_tokens: int,
        stop: Stop | None = None,
    ) -> Reading:
        """Returns the best span of a passage that was found as `hit`.

        `question` are token ids without special tokens. A passage without tokens gets an empty span
        at 0 and a score of minus infinity.

        Raises:
            StoppedError: `stop` was set before all windows were read.

        """
        parts = self._model.windows(question, stored, stop)
        candidates = [_candidate(part, max_answer_tokens) for part in parts]
        scores = [
            combine(self._score, each.relevance, each.span, hit.distance) for each in candidates
        ]
        score, best = max(zip(scores, candidates, strict=True), key=lambda pair: pair[0])
        start, end = self._characters(stored, best)
        return Reading(
            passage=stored.passage,
            start=start,
            end=end,
            score=score,
            relevance=best.relevance,
            span_score=best.span,
            distance=hit.distance,
            hybrid_distance=hit.hybrid_distance,
            words=hit.words,
        )

    def _characters(self, stored: StoredPassage, span: _Candidate) -> tuple[int, int]:
        if span.last < span.first:
            return 0, 0
        offsets = stored.tokens.offsets
        return whole_words(stored.passage.text, offsets[span.first][0], offsets[span.last][1])


def _candidate(window: WindowLogits, max_answer_tokens: int) -> _Candidate:
    span = best_span(window.start, window.end, max_answer_tokens)
    if span is None:
        return _Candidate(0, -1, float("-inf"), window.relevance)
    first, last = span.first + window.first, span.last + window.first
    return _Candidate(first, last, span.score, window.relevance)


def combine(weights: ScoreEntry, relevance: float, span: float, distance: float) -> float:
    """Returns the score that answers of all shards are ranked by.

    It is minus infinity without a span, for any weight: zero times infinity is not a number.
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
    """Opens the bundle's reader; raises ArtefactError if that fails.

    `max_tokens` cuts passages into shorter windows than the bundle does.
    """
    entry, score = bundle.manifest.reader, bundle.manifest.score
    check_lengths(bundle, options, max_tokens)
    if entry.apart is not None:
        # no comparison of runtimes: states may be of a machine that only looked at its flags
        upper = open_session(bundle.reader, OUTPUTS, entry.precision, options)
        return Reader(SplitReader(open_lower_layers(bundle, special, options), upper), score)
    shorter = min(max_tokens or entry.max_tokens, entry.max_tokens)
    entry = entry.model_copy(update={"max_tokens": shorter})
    usual = usual_read(special, entry)
    session = open_session(bundle.reader, OUTPUTS, entry.precision, options, usual=usual)
    return Reader(CrossEncoder(session, special, entry), score)


def check_lengths(bundle: Bundle, options: InferenceOptions, max_tokens: int | None) -> None:
    """Raises ArtefactError if the bundle's reader cannot take sequences of these lengths."""
    entry = bundle.manifest.reader
    shorter = (max_tokens or entry.max_tokens) < entry.max_tokens
    if entry.apart is not None and (options.pad_to or shorter):
        raise ArtefactError(
            f"the reader of {bundle.directory} takes no padding (--pad-to) and no shorter windows "
            "(--max-tokens): its passages are prepared when they are indexed; leave both out"
        )
