"""Token states: an inner value of the question encoder, without another file."""

import asyncio

import numpy as np
import onnx
import pytest

from winnow.bundle import load_bundle
from winnow.errors import ArtefactError
from winnow.inference.encoder import Encoder, open_question_encoder
from winnow.inference.inner_output import extension_with_output
from winnow.inference.local import LocalTextEncoder
from winnow.packaged import default_bundle
from winnow.text.tokenizer import Tokenizer

pytestmark = pytest.mark.bundle


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(load_bundle(default_bundle()).tokenizer)


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> Encoder:
    return open_question_encoder(load_bundle(default_bundle()), tokenizer.special, states=True)


def test_states_change_no_vector(tokenizer: Tokenizer, encoder: Encoder) -> None:
    plain = open_question_encoder(load_bundle(default_bundle()), tokenizer.special)
    for text in ("", "who won?", "the meaning of life, the universe and everything " * 4):
        ids = tokenizer.tokenise(text).ids
        vector, states = encoder.with_states(ids)
        assert np.array_equal(vector, plain.question(ids))
        assert states is not None
        assert states.shape == (len(ids) + 2, 384)
        assert states.dtype == np.float16


def test_the_states_are_of_the_layer_that_the_manifest_names(tokenizer: Tokenizer) -> None:
    """The encoder pools its last layer by the mean, so that is where the vector points."""
    bundle = load_bundle(default_bundle())
    last = bundle.manifest.encoder.states.replace("layer.3", "layer.5")
    entry = bundle.manifest.encoder.model_copy(update={"states": last})
    changed = bundle.manifest.model_copy(update={"encoder": entry})
    encoder = open_question_encoder(
        type(bundle)(bundle.directory, changed), tokenizer.special, states=True
    )
    vector, states = encoder.with_states(tokenizer.tokenise("who painted the ceiling?").ids)
    assert states is not None
    mean = states.astype(np.float32).mean(0)
    assert np.allclose(mean / np.linalg.norm(mean), vector, atol=1e-3)


def test_a_text_is_encoded_with_its_states(tokenizer: Tokenizer, encoder: Encoder) -> None:
    local = LocalTextEncoder(encoder, 1)
    try:
        made = asyncio.run(local.encode(tokenizer.tokenise("who won?").ids))
    finally:
        local.close()
    assert made.states is not None
    assert len(made.states) == 5


def test_a_name_longer_than_one_byte_of_length_is_found() -> None:
    """Lengths from 128 on take two bytes."""
    name = "x" * 200
    node = onnx.helper.make_node("Identity", ["a"], [name])
    last = onnx.helper.make_node("Identity", [name], ["b"])
    floats = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "ab"]
    graph = onnx.helper.make_graph([node, last], "g", floats[:1], floats[1:])
    changed = onnx.ModelProto.FromString(
        onnx.helper.make_model(graph).SerializeToString() + extension_with_output(name)
    )
    assert [output.name for output in changed.graph.output] == ["b", name]


def test_a_model_without_the_states_is_refused_by_name(tokenizer: Tokenizer) -> None:
    bundle = load_bundle(default_bundle())
    entry = bundle.manifest.encoder.model_copy(update={"states": "no such value"})
    changed = bundle.manifest.model_copy(update={"encoder": entry})
    other = type(bundle)(bundle.directory, changed)
    with pytest.raises(ArtefactError, match=r"encoder\.onnx"):
        open_question_encoder(other, tokenizer.special, states=True)
    none = entry.model_copy(update={"states": ""})
    other = type(bundle)(bundle.directory, bundle.manifest.model_copy(update={"encoder": none}))
    with pytest.raises(ArtefactError, match="names no tensor for token states"):
        open_question_encoder(other, tokenizer.special, states=True)


def test_states_are_no_part_of_what_an_index_or_an_answer_depends_on() -> None:
    """Older indexes serve on, and so do nodes of a bundle without states."""
    manifest = load_bundle(default_bundle()).manifest
    entry = manifest.encoder.model_copy(update={"states": ""})
    without = manifest.model_copy(update={"encoder": entry})
    assert without.encoding_fingerprint == manifest.encoding_fingerprint
    assert without.fingerprint == manifest.fingerprint
    assert without.states_fingerprint != manifest.states_fingerprint
