"""Minimises a loss of a few weights with L-BFGS."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def minimise(parameters: Sequence[Tensor], loss: Callable[[], Tensor]) -> None:
    """Changes the parameters in place to minimise `loss`."""
    optimiser = torch.optim.LBFGS(list(parameters), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
