"""The heads that come with Winnow belong to the encoder that comes with it."""

import asyncio

import numpy as np
import pytest
from numpy.typing import NDArray

from winnow.bundle import load_bundle
from winnow.domain.prediction import SequencePrediction, TokenPrediction
from winnow.heads.head import Head, open_head
from winnow.heads.store import open_store
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.packaged import default_bundle, default_heads
from winnow.text.tokenizer import Tokenizer

pytestmark = pytest.mark.bundle

LARGEST = 350_000
"""Bytes of a model: a thousand heads fit where one more encoder would."""


def head(name: str) -> Head:
    store = open_store(default_heads())
    return open_head(store.fetch(name, store.read_record(name).version))


def states(text: str) -> NDArray[np.float32]:
    bundle = load_bundle(default_bundle())
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder = LocalTextEncoder(open_question_encoder(bundle, tokenizer.special, states=True), 1)
    try:
        found = asyncio.run(encoder.encode(tokenizer.tokenise(text).ids)).states
    finally:
        encoder.close()
    assert found is not None
    return found.astype(np.float32)


@pytest.mark.parametrize("name", ["intent", "entities"])
def test_a_head_names_its_encoder_its_licence_and_its_accuracy(name: str) -> None:
    manifest = head(name).manifest
    assert manifest.encoder.fingerprint == load_bundle(default_bundle()).manifest.states_fingerprint
    assert "CC BY" in manifest.licences["training data"]
    assert manifest.accuracy
    assert manifest.model.bytes < LARGEST
    assert manifest.trained_on is not None
    assert "/" not in manifest.trained_on.data


def test_the_intent_of_a_text_is_told_and_that_it_has_none() -> None:
    intent = head("intent")
    said = intent.predict(states("how do you say hello in french"))
    assert isinstance(said, SequencePrediction)
    assert (said.labels[0].label, said.labels[0].assigned, said.out_of_scope) == (
        "translate", True, False,
    )  # fmt: skip
    said = intent.predict(states("how many moons does the planet jupiter have"))
    assert isinstance(said, SequencePrediction)
    assert said.out_of_scope


def test_an_entity_of_a_text_is_found() -> None:
    said = head("entities").predict(states("we flew from london to the empire state building"))
    assert isinstance(said, TokenPrediction)
    assert "location" in {span.label for span in said.spans}
