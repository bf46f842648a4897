"""Trains late interaction and the encoder from a pack, on a GPU.

The results are written to a workspace, from which `winnow models assemble` makes bundles.
"""

import copy
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.network.architecture import Encoder, Reader, interpolate_weights
from models.network.late_interaction import LateInteraction
from models.packed import mining
from models.packed.arrays import TRAINING, write_figures_json
from models.packed.encoder_training import LargeBatchTask
from models.packed.figures import encoder_figures, late_figures, ranked_sets
from models.packed.late_training import CombinedScore, LateTask
from models.packed.loaded import LoadedPack
from models.packed.mined import MinedQuestions
from models.packed.networks import (
    load_encoder,
    load_reader,
    save_projections,
    word_weight,
)
from models.training import checkpoint
from models.training.loop import Schedule
from models.training.timed import train_until
from models.workspace import Workspace

NETWORKS, FIGURES = "networks", "figures.json"
"""Directory of networks in a pack, and file of figures in a workspace."""
SHIPPED, MEAN, TRAINED = "shipped", "mean", "trained"
"""Names of encoders: the bundle's, the mean of the bundle's and the trained, and the trained."""
MEAN_SHARE = 0.5
"""Weight of the trained encoder in the mean encoder. It was chosen before any measurement."""
PROJECTIONS = (((6,), (8, 16, 32, 64)), ((4, 6), (16, 32)))
"""Projections to train: layers of the encoder, and numbers of values per token."""
_LATE_QUESTIONS, _ENCODER_QUESTIONS = 96, 512
"""Questions per training step."""
_LATE_RATE, _ENCODER_RATES = 2e-3, (1e-4, 5e-5)
"""Peak learning rates. The encoder is trained in two rounds, each with its own rate."""
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingBudget:
    """Seconds for each stage of retrieval training."""

    mining: float = 45.0
    """Time to search candidates. Confirming answers takes up to 0.7 times as long in addition."""
    late: float = 80.0
    """Time to train late interaction for the shipped encoder."""
    encoder: float = 60.0
    """Time for each of two rounds of encoder training; 0 trains no encoder."""
    mean_late: float = 30.0
    """Time to train late interaction for the mean encoder; 0 trains none."""


class RetrievalTraining:
    """Trains and measures late interaction and the encoder, in stages that share a loaded pack."""

    def __init__(self, pack: Path, out: Path, device: str, report: Report) -> None:
        """Loads a pack and its networks onto a device. Makes the directory `out`."""
        self._networks, self._out, self._report = pack / NETWORKS, Workspace(out).create(), report
        self._pack = LoadedPack.open(pack, torch.device(device), word_weight(self._networks))
        self._encoder = load_encoder(self._networks, self._pack.device)
        self._teacher: Reader = load_reader(self._networks, self._pack.device)
        self._late: dict[str, CombinedScore] = {}

    def run(self, budget: TrainingBudget) -> None:
        """Trains late interaction for the shipped encoder, an encoder, and late interaction for it.

        Each stage saves its result at once. A failed stage is reported, and the next stage runs.
        """
        vectors = self._pack.encode(self._encoder)
        self._report("passages encoded")
        mined, yields = mining.mine_candidates(
            self._pack, self._encoder, self._teacher, vectors, budget.mining
        )
        self._record("mined", {name: asdict(each) for name, each in yields.items()})
        training, held = mining.split_held_out(self._pack, mined.take(mined.is_answered))
        self._attempt(
            lambda: self._train_late_interaction(SHIPPED, self._encoder, training, budget.late)
        )
        self._attempt(lambda: self._measure(SHIPPED, self._encoder, vectors, held))
        if budget.encoder:
            self._attempt(lambda: self._train_and_measure_encoder(training, held, budget))

    def _train_and_measure_encoder(
        self, training: MinedQuestions, held: MinedQuestions, budget: TrainingBudget
    ) -> None:
        latest, found = copy.deepcopy(self._encoder), training
        for number, rate in enumerate(_ENCODER_RATES):
            if number:
                vectors = self._pack.encode(latest)
                found = mining.search_again(
                    self._pack, latest, vectors, training, budget.mining / 3
                )
            self._train_encoder(latest, found, budget.encoder, rate)
        mean = self._save_encoder(latest)
        vectors = self._pack.encode(mean)
        self._attempt(lambda: self._measure(MEAN, mean, vectors, held))
        if budget.mean_late:
            self._train_late_interaction(MEAN, mean, training, budget.mean_late)
            self._attempt(lambda: self._measure(MEAN, mean, vectors, held))
        self._measure(TRAINED, latest, self._pack.encode(latest), held)

    def _train_late_interaction(
        self, name: str, encoder: Encoder, mined: MinedQuestions, seconds: float
    ) -> None:
        """Trains projections of all sizes in the same steps, and saves them."""
        torch.manual_seed(1)
        width, depth = encoder.body.config.hidden_size, encoder.body.config.num_hidden_layers
        projections = [
            LateInteraction(width, values, [min(layer, depth) for layer in layers])
            for layers, sizes in PROJECTIONS
            for values in sizes
        ]
        network = CombinedScore(projections).to(self._pack.device)
        task = LateTask(
            network=network,
            body=encoder.body,
            teacher=self._teacher,
            passages=self._pack.passages,
            questions=self._pack.questions[TRAINING],
            mined=mining.without_weak_sources(self._pack, mined, cloze=0.25),
            batch=_LATE_QUESTIONS // self._pack.batch_divisor,
        )
        schedule, deadline = Schedule(_LATE_RATE, quantised=0.0), time.monotonic() + seconds
        train_until(network, task.steps(), schedule, deadline, report=self._report)
        self._late[name] = network
        save_projections(self._out.root / f"late-{name}.pt", projections)

    def _train_encoder(
        self, encoder: Encoder, mined: MinedQuestions, seconds: float, rate: float
    ) -> None:
        """Trains `encoder` in place, in large batches."""
        task = LargeBatchTask(
            encoder=encoder,
            passages=self._pack.passages,
            questions=self._pack.questions[TRAINING],
            mined=mining.without_weak_sources(self._pack, mined, cloze=0.5),
            batch=_ENCODER_QUESTIONS // self._pack.batch_divisor,
        )
        schedule = Schedule(rate, warmup=0.1, quantised=0.2)
        train_until(
            encoder,
            task.steps(),
            schedule,
            time.monotonic() + seconds,
            report=self._report,
            body=encoder.body,
        )

    def _save_encoder(self, trained: Encoder) -> Encoder:
        """Saves the run of the trained encoder, and returns its mean with the shipped encoder."""
        mean = load_encoder(self._networks, self._pack.device)
        state = interpolate_weights(mean.state_dict(), trained.state_dict(), MEAN_SHARE)
        mean.load_state_dict(state)
        plan = {"share": MEAN_SHARE, "rates": _ENCODER_RATES, "questions": _ENCODER_QUESTIONS}
        save_run(
            self._out.run_checkpoint_path("encoder"),
            trained,
            plan,
            {checkpoint.MEAN: _on_cpu(state)},
        )
        return mean

    def _measure(self, name: str, encoder: Encoder, vectors: Tensor, held: MinedQuestions) -> None:
        sets = ranked_sets(self._pack, encoder, vectors, held)
        self._record(f"{name} encoder", encoder_figures(sets, self._pack.word_weight))
        if name in self._late:
            late = late_figures(self._pack, encoder, self._late[name], sets)
            self._record(f"{name} late interaction", late)

    def _record(self, name: str, figures: object) -> None:
        write_figures_json(self._out.root / FIGURES, {name: figures})
        self._report(f"{name}: written to {FIGURES}")

    def _attempt(self, stage: Callable[[], None]) -> None:
        """Runs a stage. Reports an exception instead of raising it."""
        try:
            stage()
        except Exception:  # noqa: BLE001 - the other stages should still run
            self._report(f"a stage failed:\n{traceback.format_exc()}")


def save_run(
    path: Path, network: torch.nn.Module, plan: dict[str, object], more: dict[str, object]
) -> None:
    """Saves the checkpoint of a finished run."""
    state = {"step": 1, "steps": 1, "plan": plan, "network": _on_cpu(network.state_dict())}
    checkpoint.save(path, {**state, **more})


def _on_cpu(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: each.cpu() for name, each in state.items()}
