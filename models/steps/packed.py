"""Trains late interaction, the encoder and the reader from a pack, on a GPU."""

import copy
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from models.network.architecture import Encoder
from models.packed import stages
from models.packed.arrays import write_figures
from models.packed.late_training import CombinedScore
from models.packed.mined import MinedQuestions
from models.packed.networks import load_encoder, load_reader, save_state
from models.packed.stages import Bench, Budget, Report

MEAN_SHARE = 0.5
"""Weight of the trained encoder in its mean with the shipped one. Fixed before it was measured."""
_RATES = (1e-4, 5e-5)
"""Peak learning rates of the encoder's two rounds."""


def train_retrieval(
    pack: Path, networks: Path, out: Path, device: str, budget: Budget, report: Report
) -> None:
    """Trains late interaction for the shipped encoder, then an encoder, then both together.

    A stage that fails is reported, and the others go on. Every stage saves its result at once.
    """
    bench = Bench.open(pack, networks, out, torch.device(device), report)
    encoder, teacher = load_encoder(networks, bench.device), load_reader(networks, bench.device)
    vectors = bench.encode(encoder)
    report("passages encoded")
    stages.mine(bench, encoder, teacher, vectors, budget.mining)
    report("training questions mined")
    mined = MinedQuestions.load(out / stages.MINED, bench.device)
    training, held = stages.split_mined(bench, mined)
    trained: dict[str, CombinedScore] = {}

    def measure(name: str, network: Encoder, found: Tensor) -> None:
        sets = stages.ranked_sets(bench, network, found, held)
        figures = {f"{name} encoder": stages.retrieval_figures(sets)}
        write_figures(out / "figures.json", figures)
        report(f"{name} encoder measured")
        if name in trained:
            late = stages.late_figures(bench, network, trained[name], sets)
            write_figures(out / "figures.json", {f"{name} late interaction": late})
            report(f"{name} late interaction measured")

    def train_late(name: str, network: Encoder, seconds: float) -> None:
        trained[name] = stages.train_late(bench, network, teacher, training, seconds)
        stages.save_late(bench, trained)

    _attempt(report, lambda: train_late("shipped", encoder, budget.late))
    (out / "late.done").touch()  # the training of the reader may begin
    _attempt(report, lambda: measure("shipped", encoder, vectors))
    latest = copy.deepcopy(encoder)

    def train_round(mined: MinedQuestions, rate: float) -> Tensor:
        stages.train_encoder(bench, latest, mined, budget.encoder, rate)
        save_state(out / "encoder.pt", latest.state_dict())
        return bench.encode(latest)

    def train_encoder() -> None:
        found = train_round(training, _RATES[0])
        again = stages.search_again(bench, latest, found, training, budget.mining / 3)
        report(f"{len(again)} questions searched again")
        train_round(again, _RATES[1])
        mean = stages.mean_of(bench, latest, MEAN_SHARE)
        means = bench.encode(mean)
        _attempt(report, lambda: measure("mean", mean, means))
        if budget.new_late:
            train_late("mean", mean, budget.new_late)
            _attempt(report, lambda: measure("mean", mean, means))
        _attempt(report, lambda: measure("trained", latest, bench.encode(latest)))

    if budget.encoder:
        _attempt(report, train_encoder)


def train_reader(
    pack: Path, networks: Path, out: Path, device: str, seconds: float, report: Report
) -> None:
    """Trains the split reader on the questions that `train_retrieval` mined."""
    bench = Bench.open(pack, networks, out, torch.device(device), report)
    stages.train_reader(bench, split_layers=3, seconds=seconds, seed=1)


def timed_report(prefix: str) -> Report:
    """Returns a report that prints lines with the seconds since now."""
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"{prefix} {time.monotonic() - started:6.1f} s  {line}", flush=True)

    return report


def _attempt(report: Report, stage: Callable[[], None]) -> None:
    """Runs a stage, and reports its failure."""
    try:
        stage()
    except Exception:
        report(f"a stage failed:\n{traceback.format_exc()}")
