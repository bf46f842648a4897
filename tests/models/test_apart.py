"""Tests of split readers: training, export and restoring."""

from pathlib import Path

import numpy as np
import pytest
import torch
from restored import assert_alike

from models.data import DataError
from models.network import split_reader
from models.network.architecture import Reader, load_body, shorten_body
from models.network.neurons import Inputs, prune_neurons
from models.network.restoring import load_weights, restore_split_weights
from models.network.split_reader import (
    SplitReader,
    export_split,
    find_segments,
    quantise_states,
    round_states,
)
from models.steps.split_reader import quantise_split_reader
from winnow.inference.onnx import OnnxSession
from winnow.reading.lower_layers import STATES_OUTPUTS
from winnow.reading.model import OUTPUTS
from winnow.reading.passage_states import quantise

QUESTION, PASSAGE = [2, 10, 11, 12, 3], [20, 3, 21, 22, 23, 24, 25, 3]


@pytest.fixture
def reader(tiny_weights: Path) -> SplitReader:
    torch.manual_seed(0)
    return SplitReader(Reader(load_body(tiny_weights)).eval(), 1)


def sequence(question: list[int], passage: list[int], padding: int = 0) -> Inputs:
    empty = [0] * padding
    ids = [*question, *passage, *empty]
    mask = [1] * (len(question) + len(passage)) + empty
    types = [0] * len(question) + [1] * len(passage) + empty
    return torch.tensor([ids]), torch.tensor([mask]), torch.tensor([types])


def served(lower: Path, upper: Path) -> list[np.ndarray]:
    """Reads as a content node does, with quantised states of the passage."""
    halves = OnnxSession(lower, STATES_OUTPUTS)
    asked, told = (
        halves.run({"input_ids": own, "token_type_ids": np.full_like(own, segment)})[0]
        for segment, own in enumerate(np.array([ids]) for ids in (QUESTION, PASSAGE))
    )
    states = quantise(told[0])
    return OnnxSession(upper, OUTPUTS).run(
        {
            "question_states": asked,
            "passage_levels": states.levels[None],
            "passage_scales": states.scales[None, :, None],
        }
    )


def trained(reader: SplitReader) -> list[np.ndarray]:
    with torch.no_grad():
        start, end, relevance = reader(*sequence(QUESTION, PASSAGE))
    inside = slice(len(QUESTION), None)
    return [start[:, inside].numpy(), end[:, inside].numpy(), relevance.numpy()]


def test_the_served_head_agrees_with_the_trained_one(reader: SplitReader, tmp_path: Path) -> None:
    paths = tmp_path / "lower.onnx", tmp_path / "upper.onnx"
    export_split(reader, *paths)
    for one, other in zip(served(*paths), trained(reader), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_int8_outputs_are_similar_to_the_trained_network(
    reader: SplitReader, tmp_path: Path
) -> None:
    wanted, paths = trained(reader), (tmp_path / "lower.onnx", tmp_path / "upper.onnx")
    quantise_split_reader(reader, [sequence(QUESTION, PASSAGE)], *paths)
    for one, other in zip(served(*paths), wanted, strict=True):
        assert np.abs(one - other).max() < 0.05 + 0.1 * np.abs(other).max()


def test_a_split_reader_is_restored_from_its_int8_graphs(
    reader: SplitReader, tiny_weights: Path, tmp_path: Path
) -> None:
    with torch.no_grad():
        for weight in reader.parameters():  # equal ones would be written once
            weight.add_(torch.randn_like(weight) * 0.02)
    prune_neurons(reader.body, [1], 3, [sequence(QUESTION, PASSAGE)], reader)
    wanted = {name: weight.clone() for name, weight in reader.state_dict().items()}
    paths = tmp_path / "lower.onnx", tmp_path / "upper.onnx"
    quantise_split_reader(reader, [sequence(QUESTION, PASSAGE)], *paths)
    other = SplitReader(Reader(load_body(tiny_weights)).eval(), 1)
    load_weights(other, other.body, restore_split_weights(*paths, 1), paths[0])
    assert_alike(other.state_dict(), wanted)
    small = Reader(load_body(tiny_weights))
    shorten_body(small.body, 1)
    with pytest.raises(DataError, match="such as one with fewer layers"):
        load_weights(other, other.body, small.state_dict(), paths[0])
    with pytest.raises(DataError, match="1 split layers, not 2"):
        restore_split_weights(*paths, 2)


def test_zero_split_layers_give_the_full_reader(
    reader: SplitReader, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    whole = Reader(load_body(tiny_weights)).eval()
    monkeypatch.setattr(split_reader, "PASSAGE_POSITION", len(QUESTION))
    monkeypatch.setattr(split_reader, "round_states", lambda states: states)
    reader.split_layers = 0
    with torch.no_grad():
        for one, other in zip(
            reader(*sequence(QUESTION, PASSAGE)), whole(*sequence(QUESTION, PASSAGE)), strict=True
        ):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_padding_and_batching_change_nothing(reader: SplitReader) -> None:
    alone = sequence(QUESTION, PASSAGE)
    other = sequence(QUESTION[:3], PASSAGE[:4], len(QUESTION) + len(PASSAGE) - 7)
    with torch.no_grad():
        one = reader(*alone)
        both = reader(*(torch.cat(pair) for pair in zip(other, alone, strict=True)))
    for single, batched in zip(one, both, strict=True):
        torch.testing.assert_close(single[0], batched[1], atol=1e-4, rtol=1e-3)


def test_the_states_of_a_passage_do_not_depend_on_the_question(reader: SplitReader) -> None:
    found = []
    for question in (QUESTION, [2, 30, 3]):
        with torch.no_grad():
            states = reader.states(*sequence(question, PASSAGE))[0]
        found.append(states[:, len(question) :])
    torch.testing.assert_close(*found, atol=1e-6, rtol=1e-5)


def test_segments_are_joined_in_the_order_of_the_tokens() -> None:
    ids, mask, types = (
        torch.cat(pair)
        for pair in zip(sequence([1, 2, 3], [4, 5]), sequence([6], [7, 8, 9], 1), strict=True)
    )
    halves = find_segments(mask, types)
    assert halves.question(ids)[0].tolist() == [1, 2, 3]
    assert halves.passage(ids)[1].tolist() == [7, 8, 9]
    joined = torch.cat([halves.question(ids), halves.passage(ids)], 1)[..., None]
    assert (halves.restore_order(joined)[..., 0] * mask == ids).all()


def test_training_rounds_states_as_indexing_does() -> None:
    states = torch.randn(1, 7, 16) * 5
    whole, scale = quantise_states(states)
    stored = quantise(states[0].numpy())
    assert np.array_equal(whole[0].numpy(), stored.levels)
    np.testing.assert_allclose(scale[0, :, 0].numpy(), stored.scales)
    torch.testing.assert_close(round_states(states), whole * scale)


def test_gradients_pass_through_the_rounding() -> None:
    states = torch.randn(1, 3, 4, requires_grad=True)
    round_states(states).sum().backward()  # type: ignore[no-untyped-call]
    assert isinstance(states.grad, torch.Tensor)
    torch.testing.assert_close(states.grad, torch.ones(1, 3, 4))
