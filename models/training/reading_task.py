"""Learning to read: spans and relevance, out of a positive and the retriever's own mistakes."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from models.network.architecture import Logits
from models.training.examples import Batch, Encoded, make_batch
from models.training.loop import StepLosses, autocast
from models.training.objective import absolute, loss
from models.training.order import batches

PAIRS = 2_500_000
"""Pairs of tokens that look at each other at the same time: about 4 GB."""
Network = TypeVar("Network", bound=nn.Module)
"""Takes ids, mask and types and gives `Logits`, as `Reader` does."""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """Settings of the training of a reader."""

    passes: dict[str, float]
    """Passes over the questions of each source."""
    questions: int = 16
    """Questions a step."""
    negatives: int = 2
    """Negatives of each question."""
    absolute: float = 0.0
    """Weight of relevance as an absolute yes or no; that among a question's passages weighs 1."""


class ReadingTask(Generic[Network]):
    """The reader's objective over mined questions."""

    def __init__(self, reader: Network, encoded: Encoded, plan: ReadingPlan, seed: int) -> None:
        self.network, self._encoded, self._plan, self._seed = reader, encoded, plan, seed
        lengths = [
            len(question) + len(encoded.passages[asked.positive].text)
            for question, asked in zip(encoded.questions, encoded.asked, strict=True)
        ]
        sources = [asked.source for asked in encoded.asked]
        self.order = batches(sources, lengths, plan.passes, plan.questions, seed)

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def plan(self) -> dict[str, Any]:
        return asdict(self._plan)

    def parts(self, step: int) -> Iterator[StepLosses]:
        """Yields span and relevance loss of the questions of `step`."""
        for batch, share in self.batch(step).parts(PAIRS):
            yield self._learn(batch).times(share)

    def _learn(self, batch: Batch) -> StepLosses:
        with autocast(batch.ids.device.type):
            logits = self.network(batch.ids, batch.mask, batch.types)
        return StepLosses(self.losses(logits, batch), batch.sequences)

    def losses(self, logits: Logits, batch: Batch) -> dict[str, Tensor]:
        """Returns the weighed losses of a reader's logits for `batch`."""
        own = losses(logits, batch)
        if self._plan.absolute:
            relevance = logits[2].view(batch.inside.shape[:2])
            own["absolute"] = absolute(relevance) * self._plan.absolute
        return own

    def batch(self, step: int) -> Batch:
        """Returns the batch of `step`."""
        return make_batch(self._encoded, self.order[step], self._plan.negatives, self._seed, step)


def losses(logits: Logits, batch: Batch) -> dict[str, Tensor]:
    """Returns the span and the relevance loss of logits for `batch`."""
    start, end, relevance = logits
    shape = batch.inside.shape
    span, chosen = loss(
        start.view(shape),
        end.view(shape),
        relevance.view(shape[:2]),
        batch.inside,
        batch.first,
        batch.last,
    )
    return {"span": span, "relevance": chosen}
