"""Trains a reader to find spans and to rank a positive above hard negatives."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from models.network.architecture import Logits
from models.training.examples import Batch, TokenisedQuestions, make_batch
from models.training.loop import StepLosses, autocast
from models.training.objective import absolute_relevance_loss, reading_losses
from models.training.order import question_batches

MAX_ATTENTION = 2_500_000
"""Maximum number of token pairs in a part of a batch. A part of this size needs about 4 GB."""
Network = TypeVar("Network", bound=nn.Module)
"""Network that maps ids, mask and types to `Logits`, as `Reader` does."""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Training settings of a reader. Field names are keys in checkpoints."""

    passes: dict[str, float]
    """Passes over the questions of each source."""
    questions: int = 16
    """Questions per step."""
    negatives: int = 2
    """Negatives of each question."""
    absolute: float = 0.0
    """Weight of the loss of absolute relevance. The ranking loss among passages has weight 1."""


class ReadingTask(Generic[Network]):
    """Training task of a reader, over mined questions."""

    def __init__(
        self, reader: Network, tokenised: TokenisedQuestions, plan: ReadingPlan, seed: int
    ) -> None:
        self.network, self._tokenised, self._plan, self._seed = reader, tokenised, plan, seed
        lengths = [
            len(ids) + len(tokenised.passages[question.positive].text)
            for ids, question in zip(tokenised.question_ids, tokenised.questions, strict=True)
        ]
        sources = [question.source for question in tokenised.questions]
        self.order = question_batches(sources, lengths, plan.passes, plan.questions, seed)

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def settings_of_result(self) -> dict[str, Any]:
        return asdict(self._plan)

    def partial_losses(self, step: int) -> Iterator[StepLosses]:
        """Yields the losses of the questions of `step`."""
        for batch, share in self.batch(step).parts(MAX_ATTENTION):
            with autocast(batch.ids.device.type):
                logits = self.network(batch.ids, batch.mask, batch.types)
            yield StepLosses(self.losses(logits, batch), batch.sequences).scaled(share)

    def losses(self, logits: Logits, batch: Batch) -> dict[str, Tensor]:
        """Returns the weighted losses of a reader's logits for `batch`."""
        by_name = batch_losses(logits, batch)
        if self._plan.absolute:
            relevance = logits[2].view(batch.in_passage.shape[:2])
            by_name["absolute"] = absolute_relevance_loss(relevance) * self._plan.absolute
        return by_name

    def batch(self, step: int) -> Batch:
        """Returns the batch of `step`."""
        return make_batch(self._tokenised, self.order[step], self._plan.negatives, self._seed, step)


def batch_losses(logits: Logits, batch: Batch) -> dict[str, Tensor]:
    """Returns the span loss and the relevance loss of `logits` for `batch`."""
    start, end, relevance = logits
    shape = batch.in_passage.shape
    span, ranking = reading_losses(
        start.view(shape),
        end.view(shape),
        relevance.view(shape[:2]),
        batch.in_passage,
        batch.first,
        batch.last,
    )
    return {"span": span, "relevance": ranking}
