"""Learning to encode questions as a larger encoder does, into the same space.

Questions are short, but every one of them waits for its vector: a student with fewer layers makes
it sooner, and the passages' vectors stay what they are. Needs questions only, no answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.network.architecture import Encoder
from models.training.examples import MAX_QUESTION
from models.training.loop import StepLosses, autocast
from models.training.objective import divergence
from models.training.order import equal_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """Settings of the training of a question encoder."""

    layers: int
    """Layers of the student."""
    passes: float
    """Passes over the texts."""
    texts: int = 96
    """Texts a step."""
    neighbours: float = 0.05
    """Weight of the texts' order around one another, beside that of their vectors."""
    scale: float = 20.0
    """Inverse temperature of the softmax over cosines, as the teacher was trained."""


class QuestionTask:
    """The vectors of a teacher, and which texts are near which."""

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
            [*encoded.ids[: MAX_QUESTION + 1], encoded.ids[-1]]
            if len(encoded.ids) > MAX_QUESTION + 2
            else encoded.ids
            for encoded in tokenizer.encode_batch(list(texts))
        ]
        self.order = equal_lengths(list(map(len, self._ids)), plan.passes, plan.texts, seed)

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def plan(self) -> dict[str, Any]:
        return asdict(self._plan)

    def parts(self, step: int) -> Iterator[StepLosses]:
        """Yields the distances of the student's vectors from the teacher's, and of their
        neighbours.
        """
        yield self._learn(step)  # texts are compared with each other: there are no parts

    def _learn(self, step: int) -> StepLosses:
        inputs = _same_length([self._ids[number] for number in self.order[step]])
        with autocast("cpu"):
            vectors = self.network(*inputs).float()
            with torch.no_grad():
                targets = self._teacher(*inputs).float()
        near = divergence(
            _others(vectors @ targets.T) * self._plan.scale,
            _others(targets @ targets.T) * self._plan.scale,
        )
        return StepLosses(
            {
                "distance": (vectors - targets).square().sum(-1).mean(),
                "neighbours": near * self._plan.neighbours,
            },
            len(vectors),
        )


def _same_length(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    ids = torch.tensor(sequences, dtype=torch.long)
    return ids, torch.ones_like(ids), torch.zeros_like(ids)


def _others(similarities: Tensor) -> Tensor:
    """[texts, texts] without every text's likeness to itself: [texts, texts - 1]."""
    count = len(similarities)
    apart = ~torch.eye(count, dtype=torch.bool)
    return similarities[apart].view(count, count - 1)
