"""The weights of several networks of one shape as those of one network. Pure."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def mean(networks: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of all; what is no fraction (a counter) is the first one's."""
    return {
        name: torch.stack([network[name] for network in networks]).mean(0)
        if first.is_floating_point()
        else first
        for name, first in networks[0].items()
    }


def mixed(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Weights between those before training (`share` 0) and after it (1)."""
    return {
        name: torch.lerp(old, after[name], share) if old.is_floating_point() else old
        for name, old in before.items()
    }
