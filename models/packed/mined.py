"""Training questions with their gold passages and the candidates that were searched for them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from models.packed.search import Candidates
from models.packed.supervision import contain_answers
from models.packed.tokens import PassageTokens, QuestionTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedQuestions:
    """Questions with a gold passage. The first dimension of every tensor is the questions."""

    numbers: Tensor
    """Numbers of the questions in the pack."""
    gold: Tensor
    """Passages that answer the questions, [questions]."""
    spans: Tensor
    """First and last token of the answer in the text, -1 if unknown, [questions, 2]."""
    candidates: Tensor
    """Passages, best first, padded by -1, [questions, candidates]."""
    distances: Tensor
    """Squared distances of the candidates, [questions, candidates]."""
    words: Tensor
    """BM25 scores of the candidates, [questions, candidates]."""
    answered: Tensor
    """Whether a candidate contains an accepted answer, [questions, candidates]."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: Tensor) -> Self:
        """Returns some of the questions, by index or by mask."""
        return type(self)(**{each.name: getattr(self, each.name)[indices] for each in fields(self)})

    def batches(self, size: int) -> Iterator[Self]:
        """Yields batches without end. Each pass over the questions has a random order."""
        while True:
            order = torch.randperm(len(self), device=self.numbers.device)
            for indices in torch.split(order, min(size, len(order))):
                yield self.take(indices)

    @classmethod
    def from_candidates(
        cls,
        passages: PassageTokens,
        questions: QuestionTokens,
        known: tuple[Tensor, Tensor, Tensor],
        candidates: Candidates,
    ) -> Self:
        """Returns questions with candidates. `known` are `numbers`, `gold` and `spans`."""
        numbers, gold, spans = known
        return cls(
            numbers=numbers,
            gold=gold,
            spans=spans,
            candidates=candidates.rows,
            distances=candidates.distances,
            words=candidates.words,
            answered=torch.cat(
                [
                    contain_answers(passages, rows, questions.answers[part])
                    for rows, part in zip(
                        torch.split(candidates.rows, 512), torch.split(numbers, 512), strict=True
                    )
                ]
            ),
        )

    def first_candidates(self, count: int) -> Candidates:
        """Returns the first `count` candidates of each question."""
        fields_of = (self.candidates, self.distances, self.words)
        return Candidates(*(each[:, :count] for each in fields_of))

    @property
    def is_answered(self) -> Tensor:
        """Whether the gold passage answers the question, and not only seems to, [questions]."""
        return self.spans[:, 0] >= 0

    @property
    def is_negative(self) -> Tensor:
        """Whether a candidate is a negative: neither the gold passage nor one with an answer."""
        return (self.candidates >= 0) & ~self.answered & (self.candidates != self.gold[:, None])

    def draw_negatives(self, count: int, among: int) -> Tensor:
        """Draws negatives of every question from its first `among` negatives, [questions, `count`].

        Repeats a negative if there are fewer than `count`. A question without negatives gets the
        gold passage of another question.
        """
        is_negative = self.is_negative
        rank = is_negative.cumsum(1)
        chance = torch.rand(rank.shape, device=rank.device)
        chance = chance.masked_fill(~is_negative | (rank > among), -1.0)
        order = chance.topk(count, 1)
        drawn = self.candidates.gather(1, order.indices)
        first = torch.where(order.values[:, :1] >= 0, drawn[:, :1], self.gold.roll(1)[:, None])
        return torch.where(order.values >= 0, drawn, first)
