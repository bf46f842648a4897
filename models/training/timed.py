"""A training loop that ends at a deadline. The learning rate follows the elapsed time."""

import math
import time
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from models.network.fake_quantisation import (
    FakeQuantisedLinear,
    enable_quantisation,
    prepare_quantisation,
)
from models.training.loop import Schedule, TrainingError, learning_rate_share

Losses = dict[str, Tensor]
Clock = Callable[[], float]


def train_until(
    network: nn.Module,
    steps: Iterable[Callable[[], Losses]],
    schedule: Schedule,
    deadline: float,
    *,
    report: Callable[[str], None],
    report_every: int = 50,
    clock: Clock = time.monotonic,
    body: nn.Module | None = None,
) -> int:
    """Trains until `clock` reaches `deadline`, and returns the number of steps.

    Each of `steps` computes the losses of a step. The linear layers of `body` imitate int8 in the
    last part of the time.

    Raises:
        TrainingError: the loss is no longer finite.

    """
    parameters = [each for each in network.parameters() if each.requires_grad]
    fused = parameters[0].is_cuda
    optimiser = torch.optim.AdamW(parameters, lr=schedule.rate, weight_decay=0.01, fused=fused)
    layers = [] if body is None else _quantised_layers(body)
    started, count = clock(), 0
    network.train()
    for step, done in _until(steps, started, deadline, clock):
        if done >= 1 - schedule.quantised:
            enable_quantisation(layers)
        for group in optimiser.param_groups:
            group["lr"] = schedule.rate * learning_rate_share(done, schedule.warmup)
        optimiser.zero_grad(set_to_none=True)
        losses = step()
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if count % report_every == 0:
            values = {name: loss.item() for name, loss in losses.items()}
            shown = "  ".join(f"{name} {value:.3f}" for name, value in values.items())
            report(f"step {count}, {clock() - started:.1f} s, {done:.0%}: {shown}")
            if not all(map(math.isfinite, values.values())):
                raise TrainingError(f"the loss is not finite at step {count}: set a smaller --rate")
        count += 1
    network.eval()
    for layer in layers:
        layer.enabled = False
    report(f"{count} steps in {clock() - started:.1f} s")
    return count


def _quantised_layers(body: nn.Module) -> list[FakeQuantisedLinear]:
    """Returns the linear layers of `body`, which may have been trained before."""
    prepare_quantisation(body)
    return [each for each in body.modules() if isinstance(each, FakeQuantisedLinear)]


def _until(
    steps: Iterable[Callable[[], Losses]], started: float, deadline: float, clock: Clock
) -> Iterator[tuple[Callable[[], Losses], float]]:
    """Yields steps with the elapsed share of the time, until `deadline`."""
    for step in steps:
        done = (clock() - started) / max(deadline - started, 1e-9)
        if done >= 1:
            return
        yield step, done
