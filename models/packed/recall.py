"""Measures the rank of the gold passage among candidates, and fits the weights of their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import BertModel

from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.network.late_interaction import LateInteraction, max_similarities, round_tokens
from models.packed.encoding import body_states, length_batches
from models.packed.search import Candidates
from models.packed.tokens import PassageTokens, QuestionTokens
from models.training.loop import autocast

COUNTS = (1, 2, 5, 10, 100)
"""Ranks at which recall is measured."""
_RIDGE = 1e-4
_MASKED = -1e4
_QUESTIONS = 32
"""Number of questions whose candidates are scored in one batch."""


@dataclass(frozen=True, slots=True)
class RankedSet:
    """Questions with their gold passages and candidates."""

    numbers: Tensor
    """Numbers of the questions in the pack."""
    gold: Tensor
    candidates: Candidates

    def features(self, late_scores: Tensor | None = None) -> Tensor:
        """Returns nearness, words and late interaction, [questions, candidates, 2 or 3]."""
        each = [
            -self.candidates.distances,
            self.candidates.words,
            *([] if late_scores is None else [late_scores]),
        ]
        return torch.stack(each, -1).float()


class LateScores:
    """Late-interaction scores of questions and candidates, for several projections."""

    def __init__(
        self,
        projections: Mapping[str, LateInteraction],
        body: BertModel,
        passages: PassageTokens,
        rows: Tensor,
    ) -> None:
        """Encodes the tokens of the passages `rows`, which may repeat."""
        self._projections, self._body = projections, body
        self._rows = torch.unique(rows)
        self._places = torch.zeros(len(passages.lengths), dtype=torch.long, device=rows.device)
        self._places[self._rows] = torch.arange(len(self._rows), device=rows.device)
        self._starts, self._lengths, self._tokens = self._encode(passages)

    @torch.no_grad()
    def _encode(self, passages: PassageTokens) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        device = self._rows.device
        lengths = (passages.lengths[self._rows] + 3).clamp(max=256)
        starts = lengths.cumsum(0) - lengths
        kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        tokens = {
            name: lengths.new_empty((int(lengths.sum()), each.project.out_features), dtype=kind)
            for name, each in self._projections.items()
        }
        for batch in length_batches(lengths):
            sequences = passages.encoder_sequences(self._rows[batch])
            positions = torch.arange(sequences.mask.shape[1], device=device)
            target = (starts[batch, None] + positions)[sequences.mask]
            lengths[batch] = sequences.mask.sum(1)
            with autocast(device.type):
                states = body_states(self._body, sequences.ids, sequences.mask)
                for name, projection in self._projections.items():
                    passage_tokens = projection.passage_token_vectors(states)
                    tokens[name][target] = passage_tokens[sequences.mask].to(kind)
        return starts, lengths, tokens

    @torch.no_grad()
    def scores(self, name: str, questions: QuestionTokens, ranked: RankedSet, bits: int) -> Tensor:
        """Returns the scores of the projection `name`, float32 [questions, candidates].

        The tokens of passages are rounded to `bits` bits.
        """
        projection, scores = self._projections[name], []
        tokens = self._tokens[name]
        for part, rows in zip(
            torch.split(ranked.numbers, _QUESTIONS),
            torch.split(ranked.candidates.rows, _QUESTIONS),
            strict=True,
        ):
            sequences = questions.sequences(part)
            with autocast(rows.device.type):
                states = body_states(self._body, sequences.ids, sequences.mask)
                query = projection.question_tokens(states, sequences.mask)
            places = self._places[rows.clamp(min=0)]
            lengths = self._lengths[places]
            positions = torch.arange(int(lengths.max()), device=rows.device)
            passage_tokens = tokens[
                (self._starts[places][..., None] + positions).clamp(max=len(tokens) - 1)
            ]
            mask = positions < lengths[..., None]
            scores.append(max_similarities(query, round_tokens(passage_tokens, bits), mask))
        return torch.cat(scores)


def fit_weights(ranked: RankedSet, features: Tensor) -> Tensor:
    """Returns the feature weights under which the gold passage most likely ranks first.

    Questions whose gold passage is no candidate are left out. No weight is negative.
    """
    is_gold = ranked.candidates.rows == ranked.gold[:, None]
    has_gold = is_gold.any(1)
    values, missing = features[has_gold].double(), ranked.candidates.rows[has_gold] < 0

    def loss(weights: Tensor) -> Tensor:
        scores = (values @ weights).masked_fill(missing, _MASKED)
        return ranking_loss(scores, is_gold[has_gold]) + _RIDGE * weights.sum()

    start = torch.ones(features.shape[2], dtype=torch.float64, device=values.device)
    return fit_signed_weights(start, loss).float()


def gold_recall(ranked: RankedSet, scores: Tensor, counts: Sequence[int] = COUNTS) -> list[float]:
    """Returns the percentage of questions whose gold passage is in the first `count` candidates.

    One value for each of `counts`.
    """
    scores = scores.masked_fill(ranked.candidates.rows < 0, _MASKED)
    is_gold = ranked.candidates.rows == ranked.gold[:, None]
    gold = scores.masked_fill(~is_gold, _MASKED).amax(1, keepdim=True)
    before = (scores > gold).sum(1)
    return [
        round(100 * float((is_gold.any(1) & (before < count)).float().mean()), 2)
        for count in counts
    ]
