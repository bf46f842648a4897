"""Fits weights that keep their signs, by L-BFGS."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from models.data import DataError


def fit_signed_weights(
    start: Tensor, loss: Callable[[Tensor], Tensor], others: Sequence[Tensor] = ()
) -> Tensor:
    """Returns the weights that minimise `loss`. Each has the sign of its value in `start`, or is 0.

    Args:
        start: initial weights, none of which is 0.
        loss: returns the loss of weights.
        others: parameters without a sign, which `loss` also uses. They are changed in place.

    Raises:
        DataError: the loss is not a number.

    """
    signs = start.sign()
    roots = start.abs().sqrt().requires_grad_()  # squares of real numbers are never negative
    parameters = [roots, *others]
    optimiser = torch.optim.LBFGS(parameters, max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(signs * roots**2)
        if value.isnan():
            raise DataError(
                "weights cannot be fitted, because the loss is not a number: check the scores that "
                "the reader gives to the passages"
            )
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return signs * roots.detach() ** 2


def fit_logistic(
    inputs: Tensor,
    targets: Tensor,
    signs: Sequence[float],
    ridge: float,
    weights: Tensor | None = None,
) -> tuple[Tensor, float]:
    """Returns slopes with these signs, and the bias, of a logistic regression.

    Args:
        inputs: [examples, features].
        targets: probability of each example, [examples].
        signs: 1 or -1 for each feature.
        ridge: weight of the sum of squared slopes in the loss.
        weights: weights of the examples, with a sum of 1; None for equal weights.

    """
    bias = torch.zeros(1, dtype=inputs.dtype, requires_grad=True)

    def loss(slopes: Tensor) -> Tensor:
        cross_entropies = binary_cross_entropy_with_logits(
            inputs @ slopes + bias, targets, reduction="none"
        )
        mean = cross_entropies.mean() if weights is None else (weights * cross_entropies).sum()
        return mean + ridge * (slopes**2).sum()

    start = 0.25 * torch.tensor(signs, dtype=inputs.dtype)
    slopes = fit_signed_weights(start, loss, [bias])
    return slopes, float(bias.detach())


def ranking_loss(scores: Tensor, is_right: Tensor) -> Tensor:
    """Returns the mean negative logarithm of the softmax probability of the right candidates.

    Both arguments are [questions, candidates]. Each question needs a right candidate.
    """
    right = scores.masked_fill(~is_right, float("-inf")).logsumexp(1)
    return (scores.logsumexp(1) - right).mean()
