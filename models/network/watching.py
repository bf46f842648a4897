"""What some layers of a network are given while it runs."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

Inputs = tuple[Tensor, Tensor, Tensor]
"""Ids, mask and token types, int64 [batch, tokens]."""
Key = TypeVar("Key", bound=Hashable)


def watch(
    network: nn.Module,
    layers: Mapping[Key, nn.Module],
    inputs: Iterable[Inputs],
    see: Callable[[Key, Tensor], None],
) -> None:
    """Runs `inputs` through a network, and shows the first argument of every call of its layers."""

    def watched(key: Key, layer: nn.Module) -> "torch.utils.hooks.RemovableHandle":
        def called(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
            see(key, given[0])

        return layer.register_forward_pre_hook(called)

    handles = [watched(*each) for each in layers.items()]
    with torch.no_grad():
        for ids, mask, types in inputs:
            network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    for handle in handles:
        handle.remove()
