"""Reads one passage for one question: runs its windows, decodes spans and returns the best."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.bundle import Bundle
from winnow.bundle.manifest import ScoreEntry
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import ArtefactError
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.inference.runtime import open_session
from winnow.inference.stop_signal import StopSignal
from winnow.reading.cross_encoder import CrossEncoder, typical_inputs
from winnow.reading.decode import best_span
from winnow.reading.lower_layers import open_lower_layers
from winnow.reading.model import OUTPUTS, ReadingModel, WindowLogits
from winnow.reading.split_reader import SplitReader
from winnow.reading.stored_passage import StoredPassage
from winnow.reading.window_reading import WindowReading
from winnow.text.snapping import snap
from winnow.text.tokenizer import SpecialTokens
from winnow.text.words import whole_words


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The best span of a window, in passage tokens; `last` is before `first` without a span."""

    first: int
    last: int
    span_score: float
    relevance: float


class Reader:
    """Reads passages and scores spans. Safe to use from several threads."""

    def __init__(
        self, model: ReadingModel, weights: ScoreEntry, late_weights: ScoreEntry | None = None
    ) -> None:
        """`late_weights` are the weights of scores of passages that are ranked by late interaction.

        By default, all passages have the same `weights`.
        """
        self.model, self._weights = model, weights
        self._late_weights = late_weights or weights

    def with_model(self, model: ReadingModel) -> "Reader":
        """Returns a reader with the same weights of scores and another model."""
        return Reader(model, self._weights, self._late_weights)

    def read(
        self,
        question: Sequence[int],
        stored: StoredPassage,
        hit: Hit,
        max_answer_tokens: int,
        stop: StopSignal | None = None,
    ) -> Reading:
        """Returns the best span of the passage of a hit.

        `question` has token ids without special tokens. A passage without tokens gets an empty span
        at 0 and a score of minus infinity.

        Raises:
            StoppedError: `stop` was set before all windows were read.

        """
        candidates = [
            _best_of_window(window, max_answer_tokens)
            for window in self.model.run_windows(question, stored, stop)
        ]
        weights = self._late_weights if hit.late_interaction else self._weights
        scores = [
            combine_scores(
                weights,
                each.relevance,
                each.span_score,
                hit.distance,
                hit.words,
                hybrid_distance=hit.hybrid_distance,
            )
            for each in candidates
        ]
        score, best = max(zip(scores, candidates, strict=True), key=lambda pair: pair[0])
        start, end = _characters(stored, best)
        return Reading(
            passage=stored.passage,
            start=start,
            end=end,
            score=score,
            relevance=best.relevance,
            span_score=best.span_score,
            distance=hit.distance,
            hybrid_distance=hit.hybrid_distance,
            words=hit.words,
            late_interaction=hit.late_interaction,
        )

    def relevances(
        self, question: Sequence[int], stored: StoredPassage, stop: StopSignal | None = None
    ) -> list[tuple[float, bool]]:
        """Returns the relevance of each window of a passage, and whether it was remembered.

        Arguments and errors are those of `read`.
        """
        windows = self.model.run_windows(question, stored, stop)
        return [(each.relevance, each.remembered) for each in windows]

    def read_windows(
        self,
        question: Sequence[int],
        stored: StoredPassage,
        distance: float,
        max_answer_tokens: int,
        stop: StopSignal | None = None,
        *,
        words: float = 0.0,
    ) -> list[WindowReading]:
        """Returns the best span of each window of a passage.

        `distance` and `words` are those of question and passage: squared Euclidean distance, and
        BM25. Other arguments and errors are those of `read`.
        """
        return [
            self._reading(
                stored, window, _best_of_window(window, max_answer_tokens), distance, words
            )
            for window in self.model.run_windows(question, stored, stop)
        ]

    def read_sentences(
        self,
        question: Sequence[int],
        stored: StoredPassage,
        sentences: Sequence[tuple[int, int]],
        distance: float,
        max_answer_tokens: int,
        stop: StopSignal | None = None,
        *,
        words: float = 0.0,
    ) -> list[tuple[int, WindowReading]]:
        """Returns the best span of each sentence in each window, with the number of the sentence.

        `sentences` are ranges of the text in its order; they do not overlap. A window gives a
        reading only for sentences of which it has a token. Other arguments are those of
        `read_windows`.
        """
        starts = [start for start, _ in stored.tokens.offsets]
        ranges = [
            (bisect_left(starts, begin), bisect_left(starts, end)) for begin, end in sentences
        ]
        found = []
        for window in self.model.run_windows(question, stored, stop):
            first, last = window.first, window.first + len(window.start)
            for number, (sentence_first, sentence_end) in enumerate(ranges):
                begin, end = max(sentence_first, first), min(sentence_end, last)
                part = slice(begin - first, max(end, begin) - first)
                span = best_span(window.start[part], window.end[part], max_answer_tokens)
                if span is not None:
                    candidate = _Candidate(
                        begin + span.first, begin + span.last, span.score, window.relevance
                    )
                    reading = self._reading(stored, window, candidate, distance, words)
                    found.append((number, reading))
        return found

    def _reading(
        self,
        stored: StoredPassage,
        window: WindowLogits,
        span: _Candidate,
        distance: float,
        words: float,
    ) -> WindowReading:
        start, end = _characters(stored, span)
        return WindowReading(
            start=start,
            end=end,
            score=combine_scores(self._weights, span.relevance, span.span_score, distance, words),
            relevance=span.relevance,
            span_score=span.span_score,
            distance=distance,
            words=words,
            remembered=window.remembered,
        )


def _characters(stored: StoredPassage, span: _Candidate) -> tuple[int, int]:
    """Returns the span in characters of the passage's text.

    It is extended to whole words and expressions, such as addresses and numbers with their units.
    """
    if span.last < span.first:
        return 0, 0
    text, offsets = stored.passage.text, stored.tokens.offsets
    return snap(text, *whole_words(text, offsets[span.first][0], offsets[span.last][1]))


def _best_of_window(window: WindowLogits, max_answer_tokens: int) -> _Candidate:
    span = best_span(window.start, window.end, max_answer_tokens)
    if span is None:
        return _Candidate(0, -1, float("-inf"), window.relevance)
    first, last = span.first + window.first, span.last + window.first
    return _Candidate(first, last, span.score, window.relevance)


def combine_scores(
    weights: ScoreEntry,
    relevance: float,
    span_score: float,
    distance: float,
    words: float = 0.0,
    *,
    hybrid_distance: float = 0.0,
) -> float:
    """Returns the score by which the answers of all shards are ranked.

    Without a span, the score is minus infinity. The weights are not applied then, because a span
    weight of 0 would make the score NaN.
    """
    if span_score == float("-inf"):
        return span_score
    read = weights.relevance * relevance + weights.span * span_score
    score = read + weights.distance * distance + (weights.words or 0.0) * words
    return score + weights.hybrid * hybrid_distance if weights.hybrid else score


def open_reader(
    bundle: Bundle,
    special: SpecialTokens,
    options: InferenceOptions = PLAIN,
    max_tokens: int | None = None,
) -> Reader:
    """Opens the bundle's reader; raises ArtefactError if that fails.

    `max_tokens` limits the length of windows; 0 or None for the length in the bundle.
    """
    manifest = bundle.manifest
    entry, weights, late = manifest.reader, manifest.score, manifest.late_interaction
    late_weights = late.score if late else None
    check_lengths(bundle, options, max_tokens)
    if entry.apart is not None:
        # runtimes are not compared: states may come from a machine that chose by its CPU flags
        upper = open_session(bundle.reader, OUTPUTS, entry.precision, options)
        model = SplitReader(open_lower_layers(bundle, special, options), upper)
        return Reader(model, weights, late_weights)
    shorter = min(max_tokens or entry.max_tokens, entry.max_tokens)
    entry = entry.model_copy(update={"max_tokens": shorter})
    typical = typical_inputs(special, entry)
    session = open_session(bundle.reader, OUTPUTS, entry.precision, options, sample_inputs=typical)
    return Reader(CrossEncoder(session, special, entry), weights, late_weights)


def check_lengths(bundle: Bundle, options: InferenceOptions, max_tokens: int | None) -> None:
    """Raises ArtefactError if the bundle's reader does not support these sequence lengths."""
    entry = bundle.manifest.reader
    is_shorter = (max_tokens or entry.max_tokens) < entry.max_tokens
    if entry.apart is not None and (options.pad_to or is_shorter):
        raise ArtefactError(
            f"the reader of {bundle.directory} is a split reader, which allows neither padding nor "
            "shorter windows: leave out --pad-to and --max-tokens"
        )
