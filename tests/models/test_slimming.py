"""Tests of layers with fewer neurons."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from models.network.architecture import Reader, load_body
from models.network.neurons import Inputs, prune_neurons, resize_to_weights
from models.network.split_reader import SplitReader


@pytest.fixture
def reader(tiny_weights: Path) -> SplitReader:
    torch.manual_seed(0)
    return SplitReader(Reader(load_body(tiny_weights)).eval(), 1)


def sequence() -> Inputs:
    ids = torch.tensor([[2, 10, 11, 3, 20, 3, 21, 22, 3]])
    types = (torch.arange(9) >= 4).long()[None]
    return ids, torch.ones_like(ids), types


def layers(reader: SplitReader) -> Any:
    return reader.body.encoder.layer


def neurons(reader: SplitReader) -> list[int]:
    return [layer.intermediate.dense.out_features for layer in layers(reader)]


def test_the_neurons_with_the_smallest_outputs_are_removed(reader: SplitReader) -> None:
    whole = neurons(reader)[1]
    with torch.no_grad():
        silent = range(0, whole, 2)
        layers(reader)[1].output.dense.weight[:, silent] = 0
        before = reader(*sequence())
        prune_neurons(reader.body, [1], whole // 2, [sequence()], reader)
        after = reader(*sequence())
    assert neurons(reader) == [whole, whole // 2]
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other)


def test_weights_of_a_slim_network_fit_one_that_is_made_for_them(
    reader: SplitReader,
) -> None:
    other = copy.deepcopy(reader)
    prune_neurons(reader.body, [1], 5, [sequence()], reader)
    resize_to_weights(other.body, reader.state_dict())
    other.load_state_dict(reader.state_dict())
    assert neurons(other) == neurons(reader)
    with torch.no_grad():
        assert torch.equal(other(*sequence())[0], reader(*sequence())[0])


def test_more_neurons_than_exist_keep_all(reader: SplitReader) -> None:
    whole = neurons(reader)
    prune_neurons(reader.body, [0, 1], 10_000, [sequence()], reader)
    assert neurons(reader) == whole
