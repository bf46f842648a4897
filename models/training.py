"""Training the reader.

Knows the loop: batch, loss, step, checkpoint. The plan (how long, how fast, over what) is data;
the objective, the order of questions and the checkpoints have files of their own.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from models import checkpoint
from models.architecture import Reader
from models.batching import Batch, make_batch
from models.examples import Encoded
from models.fake_quantisation import enable, prepare
from models.objective import loss
from models.order import batches
from winnow.errors import WinnowError


class TrainingError(WinnowError):
    """A run cannot go on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides what a run learns."""

    passes: dict[str, float]
    """How often the questions of each source are seen."""
    questions: int = 16
    """Questions a step."""
    negatives: int = 2
    """Negatives of each question."""
    rate: float = 2e-4
    """Peak learning rate, reached after `warmup` and falling linearly to zero."""
    warmup: float = 0.05
    """Share of the steps."""
    quantised: float = 0.2
    """Share of the steps, at the end, that imitate int8."""
    seed: int = 1


@dataclass(slots=True)
class Standing:
    """Where a run stands."""

    step: int
    steps: int
    span: float = 0.0
    relevance: float = 0.0
    sequences: int = 0
    started: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        """Losses and rate, for people."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        rate = self.sequences / elapsed
        return f"span {self.span:.3f}  relevance {self.relevance:.3f}  {rate:.1f} sequences/s"


class Trainer:
    """One run, from its first step or from its checkpoint."""

    def __init__(
        self,
        reader: Reader,
        encoded: Encoded,
        plan: Plan,
        path: Path,
        order: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._reader, self._encoded, self._plan, self._path = reader, encoded, plan, path
        self.order = order if order is not None else plan_order(encoded, plan)
        self._layers = prepare(reader.body)
        trained = [p for p in reader.parameters() if p.requires_grad]
        self._optimiser = torch.optim.AdamW(trained, lr=plan.rate, weight_decay=0.01, fused=True)
        self.step = 0
        self._resume()

    def run(self, every: int, report: Callable[[Standing], None], until: int | None = None) -> None:
        """Trains to the end, or to step `until`; reports every step and saves every `every` steps.

        Raises:
            TrainingError: the loss is not a number any more.

        """
        end = len(self.order) if until is None else min(until, len(self.order))
        standing = Standing(self.step, len(self.order))
        for batch in self._batches(end):
            span, relevance = self._learn(batch)
            standing.step, standing.sequences = self.step, standing.sequences + batch.sequences
            standing.span += (span - standing.span) * 0.02
            standing.relevance += (relevance - standing.relevance) * 0.02
            if self.step % every == 0 or self.step == end:
                self._save()
            report(standing)

    def _batches(self, end: int) -> Iterator[Batch]:
        plan = self._plan
        for step in range(self.step, end):
            yield make_batch(self._encoded, self.order[step], plan.negatives, plan.seed, step)

    def _learn(self, batch: Batch) -> tuple[float, float]:
        done = self.step / len(self.order)
        if done >= 1 - self._plan.quantised:
            enable(self._layers)
        for group in self._optimiser.param_groups:
            group["lr"] = self._plan.rate * schedule(done, self._plan.warmup)
        self._reader.train()
        with _autocast(batch):
            start, end, relevance = self._reader(batch.ids, batch.mask, batch.types)
        shape = batch.inside.shape
        span, chosen = loss(
            start.view(shape),
            end.view(shape),
            relevance.view(shape[:2]),
            batch.inside,
            batch.first,
            batch.last,
        )
        total = span + chosen
        if not torch.isfinite(total):
            raise TrainingError(f"the loss is {total.item()} at step {self.step}")
        self._optimiser.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._reader.parameters(), 1.0)
        self._optimiser.step()
        self.step += 1
        return span.item(), chosen.item()

    def _save(self) -> None:
        state: dict[str, Any] = {
            "step": self.step,
            "plan": asdict(self._plan),
            "reader": self._reader.state_dict(),
            "optimiser": self._optimiser.state_dict(),
        }
        checkpoint.save(self._path, state)

    def _resume(self) -> None:
        state = checkpoint.load(self._path)
        if state is None:
            return
        if state["plan"] != asdict(self._plan):
            raise TrainingError(
                f"{self._path} belongs to another plan: {state['plan']}; "
                "give the same settings, or another directory"
            )
        self._reader.load_state_dict(state["reader"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]


def plan_order(encoded: Encoded, plan: Plan) -> list[list[int]]:
    """The questions of every step of a run."""
    lengths = [
        len(question) + len(encoded.passages[asked.positive].text)
        for question, asked in zip(encoded.questions, encoded.asked, strict=True)
    ]
    sources = [asked.source for asked in encoded.asked]
    return batches(sources, lengths, plan.passes, plan.questions, plan.seed)


def schedule(done: float, warmup: float) -> float:
    """Share of the peak learning rate when `done` of the run has passed."""
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)


def _autocast(batch: Batch) -> AbstractContextManager[None]:
    """bfloat16 where the processor has it natively: about twice as fast there."""
    device = batch.ids.device.type
    able = device != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001
    return torch.autocast(device, dtype=torch.bfloat16, enabled=bool(able))
