"""Trains late interaction over a frozen encoder. The teacher is a reader that scores candidates."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import BertModel

from models.network.architecture import Reader
from models.network.late_interaction import LateInteraction, max_similarities
from models.packed.encoding import body_states, reader_logits
from models.packed.mined import MinedQuestions
from models.packed.supervision import best_spans
from models.packed.tokens import PassageTokens, QuestionTokens, Sequences
from models.training.loop import autocast
from models.training.objective import divergence

_MASKED = -1e4
_READER_TOKENS = 208
CANDIDATES = 12
"""Number of candidates of a question in a step, including its gold passage."""
_AMONG = 48
"""Number of best candidates from which the candidates of a step are drawn."""
TEACHER_WEIGHTS = (0.26, 0.5)
"""Weights of relevance and span in the teacher's score of a passage."""


class CombinedScore(nn.Module):
    """Several late-interaction projections, each with its own weights of nearness and words."""

    def __init__(self, projections: Sequence[LateInteraction]) -> None:
        super().__init__()
        self.projections = nn.ModuleList(projections)
        self.others = nn.Parameter(torch.tensor([[2.0, 0.1]] * len(projections)))
        """Weights of nearness and words for each projection."""


class LateTask:
    """Computes the losses of late interaction over batches of mined questions.

    Leaves out questions whose gold passage is not a candidate.
    """

    def __init__(
        self,
        *,
        network: CombinedScore,
        body: BertModel,
        teacher: Reader,
        passages: PassageTokens,
        questions: QuestionTokens,
        mined: MinedQuestions,
        batch: int,
    ) -> None:
        self.network, self._body, self._teacher = network, body, teacher
        self._passages, self._questions, self._batch = passages, questions, batch
        has_gold = (mined.candidates == mined.gold[:, None]).any(1)
        self._mined = mined.take(has_gold)

    def steps(self) -> Iterator[Callable[[], dict[str, Tensor]]]:
        """Yields training steps without end. Each pass over the questions has a random order."""
        for part in self._mined.batches(self._batch):
            yield partial(self.losses, part)

    def losses(self, part: MinedQuestions) -> dict[str, Tensor]:
        """Returns one loss per projection, the sum of two losses.

        One is for the late-interaction score alone, the other for the score combined with distance
        and words.
        """
        chosen = self._draw_candidates(part)
        rows = part.candidates.gather(1, chosen)
        missing = (rows < 0) | (rows == part.gold[:, None])
        missing[:, 0] = False
        rows = rows.clamp(min=0)
        others = torch.stack([-part.distances.gather(1, chosen), part.words.gather(1, chosen)], -1)
        # candidates with the answer get the teacher's score, but are no negatives
        unjudged = missing | part.answered.gather(1, chosen)
        unjudged[:, 0] = False
        question_sequences = self._questions.sequences(part.numbers)
        with torch.no_grad(), autocast(rows.device.type):
            target = self._teacher_scores(question_sequences, rows).masked_fill(missing, _MASKED)
            sequences = self._passages.encoder_sequences(rows.flatten())
            passage_states = body_states(self._body, sequences.ids, sequences.mask)
            question_states = body_states(
                self._body, question_sequences.ids, question_sequences.mask
            )
        first = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        losses = {}
        for number, projection in enumerate(self.network.projections):
            assert isinstance(projection, LateInteraction)
            with autocast(rows.device.type):
                tokens = projection.passage_token_vectors(passage_states)
                query = projection.question_tokens(question_states, question_sequences.mask)
                late = max_similarities(
                    query,
                    tokens.view(*rows.shape, *tokens.shape[1:]),
                    sequences.mask.view(*rows.shape, -1),
                )
            together = late + (others * self.network.others[number]).sum(-1)
            loss = torch.zeros((), device=rows.device)
            for scores in (late, together):
                gold = cross_entropy(scores.masked_fill(unjudged, _MASKED), first)
                loss = loss + gold + divergence(scores.masked_fill(missing, _MASKED), target)
            losses[projection.name] = loss
        return losses

    def _draw_candidates(self, part: MinedQuestions) -> Tensor:
        """Draws column indices of candidates, gold passage first, [questions, `CANDIDATES`]."""
        among = part.candidates[:, :_AMONG]
        chance = torch.rand(among.shape, device=among.device)
        # better candidates are drawn more often
        chance = chance ** (1 + torch.arange(among.shape[1], device=among.device) / 12)
        chance = chance.masked_fill((among < 0) | (among == part.gold[:, None]), -1.0)
        drawn = chance.topk(min(CANDIDATES - 1, among.shape[1]), 1).indices
        gold = (part.candidates == part.gold[:, None]).int().argmax(1, keepdim=True)
        return torch.cat([gold, drawn], 1)

    def _teacher_scores(self, question_sequences: Sequences, rows: Tensor) -> Tensor:
        """Returns the teacher's scores of candidates, [questions, candidates]."""
        count = rows.shape[1]
        questions = Sequences(
            *(
                each.repeat_interleave(count, 0)
                for each in (
                    question_sequences.ids,
                    question_sequences.mask,
                    question_sequences.text,
                    question_sequences.text_lengths,
                )
            )
        )
        offsets = torch.zeros_like(rows.flatten())
        passages = self._passages.reader_sequences(rows.flatten(), _READER_TOKENS, offsets)
        start, end, relevance = reader_logits(self._teacher, questions, passages)
        span = best_spans(start, end, passages.text_mask)[2]
        verdict = TEACHER_WEIGHTS[0] * relevance + TEACHER_WEIGHTS[1] * span
        return verdict.view(rows.shape).float()
