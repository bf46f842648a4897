"""Trains a smaller question encoder to give the same vectors as a larger encoder.

The smaller encoder is faster, and the vectors of passages remain valid. Training needs only the
texts of questions, not their answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.network.architecture import Encoder
from models.training.examples import MAX_QUESTION_TOKENS
from models.training.loop import StepLosses, autocast
from models.training.objective import divergence
from models.training.order import equal_length_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """Training settings of a question encoder. Field names are keys in checkpoints."""

    layers: int
    """Layers of the student."""
    passes: float
    """Passes over the texts."""
    texts: int = 96
    """Texts per step."""
    neighbours: float = 0.05
    """Weight of the loss of similarities between texts. The loss of vectors has weight 1."""
    scale: float = 20.0
    """Inverse temperature of the softmax over cosines, as the teacher was trained."""


class QuestionTask:
    """Training task of a student that imitates a teacher's vectors and their similarities."""

    def __init__(
        self,
        *,
        student: Encoder,
        teacher: Encoder,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        plan: QuestionPlan,
        seed: int,
    ) -> None:
        self.network, self._plan = student, plan
        self._teacher = teacher.eval().requires_grad_(requires_grad=False)
        self._ids = [
            [*encoded.ids[: MAX_QUESTION_TOKENS + 1], encoded.ids[-1]]
            if len(encoded.ids) > MAX_QUESTION_TOKENS + 2
            else encoded.ids
            for encoded in tokenizer.encode_batch(list(texts))
        ]
        self.order = equal_length_batches(list(map(len, self._ids)), plan.passes, plan.texts, seed)

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def settings_of_result(self) -> dict[str, Any]:
        return asdict(self._plan)

    def partial_losses(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses of vectors and similarities."""
        yield self._losses(step)  # a step is one part, as all its texts are compared

    def _losses(self, step: int) -> StepLosses:
        ids = torch.tensor([self._ids[number] for number in self.order[step]], dtype=torch.long)
        inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))
        with autocast("cpu"):
            vectors = self.network(*inputs).float()
            with torch.no_grad():
                targets = self._teacher(*inputs).float()
        similarity_loss = divergence(
            _without_diagonal(vectors @ targets.T) * self._plan.scale,
            _without_diagonal(targets @ targets.T) * self._plan.scale,
        )
        return StepLosses(
            {
                "distance": (vectors - targets).square().sum(-1).mean(),
                "neighbours": similarity_loss * self._plan.neighbours,
            },
            len(vectors),
        )


def _without_diagonal(similarities: Tensor) -> Tensor:
    """Removes each text's similarity to itself: [texts, texts] to [texts, texts - 1]."""
    count = len(similarities)
    off_diagonal = ~torch.eye(count, dtype=torch.bool)
    return similarities[off_diagonal].view(count, count - 1)
