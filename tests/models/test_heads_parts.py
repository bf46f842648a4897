"""Tests of parts of making heads that need no training."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from models.heads.calibration import (
    fit_label_threshold,
    fit_multi_temperature,
    fit_temperature,
    fit_threshold,
)
from models.heads.entities import (
    accuracy,
    bio_entities,
    entity_scores,
    label_pieces,
    label_scores,
    predicted_entities,
    whole_word_entities,
)
from models.heads.network import Network, SequenceNetwork, TokenNetwork, export_head, quantise_head
from models.heads.task import hold_out
from models.network.export import find_states_output
from winnow.bundle import load_bundle
from winnow.heads.labels import softmax
from winnow.heads.manifest import INPUT, OUTPUT
from winnow.inference.onnx import OnnxSession
from winnow.packaged import default_bundle


def test_word_pieces_have_the_label_of_their_word() -> None:
    words, labels = [(0, 3), (4, 8), (9, 12)], ["O", "B-x", "I-x"]
    pieces = [(0, 3), (4, 6), (6, 8), (9, 10), (10, 12)]
    assert label_pieces(pieces, words, labels) == ["O", "B-x", "I-x", "I-x", "I-x"]


def test_a_word_without_pieces_shifts_no_label() -> None:
    """Characters that a tokenizer drops, and texts that were cut."""
    words, labels = [(0, 1), (2, 3), (4, 5)], ["B-x", "B-y", "O"]
    assert label_pieces([(0, 1), (4, 5)], words, labels) == ["B-x", "O"]
    assert label_pieces([], words, labels) == []


def test_entities_are_read_as_conll_does() -> None:
    words = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    labels = ["B-x", "I-x", "B-x", "I-y", "O"]
    assert bio_entities(words, labels) == [(0, 3, "x"), (4, 5, "x"), (6, 7, "y")]


def test_an_entity_counts_only_with_its_ends_and_its_label() -> None:
    right = [[(0, 3, "x"), (4, 5, "y")], []]
    said = [[(0, 3, "x"), (4, 6, "y")], [(0, 1, "x")]]
    assert entity_scores(said, right) == {
        "entity_precision": pytest.approx(100 / 3),
        "entity_recall": 50.0,
        "entity_f1": pytest.approx(40.0),
    }
    assert entity_scores([[]], [[]])["entity_f1"] == 0.0


def test_labels_and_texts_are_counted_in_percent() -> None:
    assert accuracy(["a", "b", "c", "d"], ["a", "b", "c", "x"]) == 75.0
    assert label_scores([{"a", "b"}, set()], [{"a"}, {"b"}])["label_f1"] == 50.0


def test_spans_grow_to_words_and_the_more_probable_one_stays() -> None:
    assert predicted_entities("a london b", [(2, 5), (5, 8)], ["B-x", "O"]) == [(2, 8, "x")]
    spans = [(2, 5, "x", 0.4), (5, 8, "y", 0.6), (9, 10, "z", 0.1)]
    assert whole_word_entities("a london b", spans) == [(2, 8, "y"), (9, 10, "z")]


def test_the_same_share_of_every_label_is_held_out() -> None:
    labels = ["a" if n % 4 else "b" for n in range(200)] + ["rare"]
    learnt, held = hold_out(labels, 0.1, seed=1)
    assert sorted(learnt + held) == list(range(201))
    counts = {label: sum(labels[n] == label for n in held) for label in ("a", "b", "rare")}
    assert counts == {"a": 15, "b": 5, "rare": 0}
    assert hold_out(labels, 0.1, seed=1) == (learnt, held)
    assert hold_out(labels, 0.1, seed=2) != (learnt, held)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(0, 9))
def test_every_label_stays_to_learn_from(labels: list[str], seed: int) -> None:
    learnt, held = hold_out(labels, 0.3, seed)
    assert sorted(learnt + held) == list(range(len(labels)))
    assert {labels[place] for place in learnt} == set(labels)


def test_overconfident_logits_get_a_high_temperature_and_unsure_ones_a_low_one() -> None:
    chance = np.random.default_rng(0)
    truth = chance.normal(size=(2000, 3)).astype(np.float32)
    shares = np.exp(truth) / np.exp(truth).sum(1, keepdims=True)
    right = [int(chance.choice(3, p=row / row.sum())) for row in shares.astype(np.float64)]
    assert fit_temperature((truth * 4).astype(np.float32), right) == pytest.approx(4, rel=0.2)
    assert fit_temperature((truth / 4).astype(np.float32), right) == pytest.approx(0.25, rel=0.2)
    assert fit_temperature(truth[:0], []) == 1.0


def test_a_few_correct_texts_do_not_make_a_head_certain() -> None:
    """Thirty of thirty is no proof that the next one is right, too."""
    logits = np.tile(np.array([6, 0, 0, 0], dtype=np.float32), (30, 1))
    share = softmax(logits[:1], fit_temperature(logits, [0] * 30)).max()
    assert 0.9 < share < 0.99
    several = fit_multi_temperature(logits - 3, logits > 0)
    assert 0.9 < 1 / (1 + np.exp(-3 / several)) < 0.999


def test_independent_labels_are_calibrated() -> None:
    chance = np.random.default_rng(0)
    truth = chance.normal(size=(2000, 3)).astype(np.float32)
    right = chance.random(truth.shape) < 1 / (1 + np.exp(-truth))
    assert fit_multi_temperature(truth * 3, right) == pytest.approx(3, rel=0.2)
    assert 0.3 < fit_label_threshold(1 / (1 + np.exp(-truth.astype(np.float64))), right) < 0.6


def test_the_threshold_nearest_to_a_half_wins_a_tie() -> None:
    scores = np.array([[0.98, 0.02], [0.97, 0.03]])
    assert fit_label_threshold(scores, scores > 0.5) == pytest.approx(0.5)


def test_the_threshold_separates_texts_with_and_without_a_label() -> None:
    best = np.array([0.9, 0.8, 0.95, 0.85])
    right = np.array([True] * 4)
    assert 0.4 < fit_threshold(best, right, np.array([0.2, 0.3, 0.4])) <= 0.8


def test_the_threshold_costs_few_right_answers() -> None:
    """Even where most texts without a label are as probable as those with one."""
    best, right = np.linspace(0, 1, 1000), np.ones(1000, dtype=np.bool_)
    assert fit_threshold(best, right, np.full(1000, 0.5)) <= 0.016


def test_without_texts_out_of_scope_nearly_all_texts_pass() -> None:
    best, right = np.linspace(0, 1, 1001), np.ones(1001, dtype=np.bool_)
    assert fit_threshold(best, right, np.array([])) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "network",
    [
        SequenceNetwork(width=24, labels=5, queries=2, hidden=8, dropout=0.5, spread=False),
        SequenceNetwork(width=24, labels=5, queries=2, hidden=8, dropout=0.5, spread=True),
        TokenNetwork(24, 5, hidden=8, dropout=0.5),
    ],
)
def test_the_graph_agrees_with_the_network_at_every_length(
    network: Network, tmp_path: Path
) -> None:
    export_head(network, 24, tmp_path / "exact.onnx")
    quantise_head(tmp_path / "exact.onnx", tmp_path / "small.onnx")
    exact, small = (OnnxSession(tmp_path / f"{n}.onnx", [OUTPUT]) for n in ("exact", "small"))
    for rows in (2, 3, 40):
        states = torch.randn(rows, 24)
        with torch.no_grad():
            expected = network.served_logits(states).numpy()
        inputs = {INPUT: states.numpy()}
        assert np.allclose(exact.run(inputs)[0], expected, atol=1e-5)
        assert np.allclose(small.run(inputs)[0], expected, atol=0.1)


@pytest.mark.parametrize(
    "network",
    [
        SequenceNetwork(width=24, labels=5, queries=3, hidden=8, dropout=0.0, spread=False),
        TokenNetwork(24, 5, hidden=8, dropout=0.0),
    ],
)
def test_padding_changes_no_logit(network: Network) -> None:
    states = torch.randn(1, 4, 24)
    filled = torch.cat([states, torch.full((1, 3, 24), 9.0)], 1)
    mask = torch.tensor([[True] * 4 + [False] * 3])
    with torch.no_grad():
        alone, among = network(states), network(filled, mask)
    assert torch.allclose(alone, among[:, :4] if among.ndim == 3 else among, atol=1e-5)


def test_texts_out_of_scope_make_every_label_improbable() -> None:
    network = SequenceNetwork(width=24, labels=4, queries=2, hidden=8, dropout=0.0, spread=True)
    with torch.no_grad():
        network.output.bias[4] = 20.0
        shares = network.served_logits(torch.randn(5, 24)).softmax(0)
    assert torch.allclose(shares, torch.full((4,), 0.25), atol=1e-3)


@pytest.mark.bundle
def test_the_manifest_names_the_states_of_the_default_bundle() -> None:
    bundle = load_bundle(default_bundle())
    assert find_states_output(bundle.question_encoder) == bundle.manifest.encoder.states


def test_a_graph_without_layers_has_no_states(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in ("a", "embedding")]
    node = helper.make_node("Identity", ["a"], ["embedding"])
    onnx.save(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:])), tmp_path / "g")
    assert find_states_output(tmp_path / "g") == ""
