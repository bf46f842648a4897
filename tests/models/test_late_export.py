"""A projection of late interaction that is added to a bundle computes what it computed in training."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from models.data import DataError
from models.network.late_interaction import LateInteraction
from models.packed.networks import load_projections, save_projections
from models.steps.late_interaction import add_late_interaction, choose_projection
from winnow.bundle import load_bundle
from winnow.bundle.manifest import FORMAT_LATE
from winnow.inference.encoder import open_passage_encoder, open_question_encoder
from winnow.inference.inner_output import extension_with_output
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import padded_inputs
from winnow.late_interaction.levels import question_levels
from winnow.packaged import default_bundle
from winnow.text.tokenizer import Tokenizer

LAYER_4 = "/body/encoder/layer.3/output/LayerNorm/LayerNormalization_output_0"
LAYER_6 = "/body/encoder/layer.5/output/LayerNorm/LayerNormalization_output_0"
TEXT = "who painted the ceiling of the chapel?"


@pytest.fixture(scope="module")
def projection() -> LateInteraction:
    torch.manual_seed(1)
    return LateInteraction(384, 16, (4, 6))


@pytest.fixture(scope="module")
def late_bundle(tmp_path_factory: pytest.TempPathFactory, projection: LateInteraction) -> Path:
    target = tmp_path_factory.mktemp("bundle") / "late"
    add_late_interaction(default_bundle(), target, projection, "9")
    return target


def test_only_the_fingerprint_of_the_bundle_changes(late_bundle: Path) -> None:
    before, after = load_bundle(default_bundle()).manifest, load_bundle(late_bundle).manifest
    assert after.format == FORMAT_LATE
    assert after.late_interaction is not None
    assert after.late_interaction.words == before.retrieval.words
    assert after.late_interaction.tokens == 0, "it has no weight before it is fitted"
    assert after.fingerprint != before.fingerprint
    assert after.encoding_fingerprint == before.encoding_fingerprint
    assert after.states_fingerprint == before.states_fingerprint
    assert after.lower_layers_fingerprint == before.lower_layers_fingerprint
    assert len({before.token_vectors_fingerprint, after.token_vectors_fingerprint, ""}) == 3
    assert after.stopping_rule(1.0, late_interaction=True) is None
    assert after.stopping_rule(1.0) == before.stopping_rule(1.0) is not None


def test_token_vectors_are_those_of_the_projection(
    late_bundle: Path, projection: LateInteraction
) -> None:
    bundle = load_bundle(late_bundle)
    tokenizer = Tokenizer(bundle.tokenizer)
    ids = tokenizer.tokenise(TEXT).ids
    sequence = [tokenizer.special.cls, *ids, tokenizer.special.sep]
    states = OnnxSession(
        bundle.question_encoder,
        [LAYER_4, LAYER_6],
        extension=extension_with_output(LAYER_4) + extension_with_output(LAYER_6),
    ).run(padded_inputs([sequence]))
    layers = [torch.zeros(0)] * 7
    layers[4], layers[6] = map(torch.tensor, states)
    expected = projection.question_tokens(layers, torch.ones(1, len(sequence)))[0].detach().numpy()
    tokens = (
        open_question_encoder(bundle, tokenizer.special, token_vectors=True)
        .encode_question(ids)
        .tokens
    )
    assert tokens is not None
    made = tokens.levels / question_levels(16) * tokens.weights[:, None]
    assert made == pytest.approx(expected, abs=1e-3)


def test_vectors_and_states_keep_their_bits(late_bundle: Path) -> None:
    plain, bundle = load_bundle(default_bundle()), load_bundle(late_bundle)
    tokenizer = Tokenizer(bundle.tokenizer)
    ids = tokenizer.tokenise(TEXT).ids
    special = tokenizer.special
    before = open_question_encoder(plain, special, states=True).encode_question(ids)
    after = open_question_encoder(bundle, special, states=True, token_vectors=True).encode_question(
        ids
    )
    assert before.vector.tobytes() == after.vector.tobytes()
    assert before.states is not None
    assert after.states is not None
    assert before.states.tobytes() == after.states.tobytes()
    passage, late_passage = (
        open_passage_encoder(each, special, token_vectors=True) for each in (plain, bundle)
    )
    vector = passage.passage(ids, ids, (0, 0))
    assert vector.tobytes() == late_passage.passage(ids, ids, (0, 0)).tobytes()
    assert late_passage.passage_tokens(ids, ids, (0, 0)).shape == (2 * len(ids) + 3, 16)


def test_a_projection_is_chosen_by_name(tmp_path: Path, projection: LateInteraction) -> None:
    save_projections(tmp_path / "late.pt", [LateInteraction(384, 8, (6,)), projection])
    saved = load_projections(tmp_path / "late.pt")
    chosen = choose_projection(saved, "layers 4+6, 16 values")
    assert np.allclose(
        chosen.project.weight.detach(), projection.project.weight.detach(), atol=1e-3
    )
    with pytest.raises(DataError, match="layers 6, 8 values"):
        choose_projection(saved, "layers 5")


def test_an_existing_directory_is_refused(tmp_path: Path, projection: LateInteraction) -> None:
    shutil.copytree(default_bundle(), tmp_path / "bundle")
    with pytest.raises(DataError, match="exists"):
        add_late_interaction(default_bundle(), tmp_path / "bundle", projection, "9")
