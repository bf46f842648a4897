"""A head on disk, opened and run."""

from pathlib import Path

import numpy as np
import pytest
from damaged_files import flip_bit
from numpy.typing import ArrayLike
from onnx import helper
from small_heads import LABELS, WIDTH, model_of, small_head, small_model

from winnow.domain.prediction import SequencePrediction, TokenPrediction
from winnow.errors import ArtefactError, UnavailableError
from winnow.heads.artefact import load_head
from winnow.heads.head import FloatStates, Head, estimate_memory, open_head
from winnow.heads.manifest import MODEL


def opened(directory: Path) -> Head:
    return open_head(load_head(directory))


def states(tokens: int) -> FloatStates:
    return np.random.default_rng(tokens).normal(0, 1, (tokens + 2, WIDTH)).astype(np.float32)


def constant(value: ArrayLike, shape: list[int | str]) -> bytes:
    """A model of one token width whose logits are `value`, for any states."""
    nodes = [
        helper.make_node("ReduceSum", ["states", "axes"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "value"], ["logits"]),
    ]
    constants: dict[str, ArrayLike] = {
        "axes": np.array([0, 1], dtype=np.int64),
        "zero": np.float32(0),
        "value": np.asarray(value, dtype=np.float32),
    }
    return model_of(nodes, constants, WIDTH, shape)


def test_a_sequence_head_labels_a_text(tmp_path: Path) -> None:
    head = opened(small_head(tmp_path, says=1, threshold=0.5))
    found = head.predict(states(5))
    assert isinstance(found, SequencePrediction)
    assert found.labels[0].label == "weather"
    assert found.labels[0].assigned
    assert found.out_of_scope is False


def test_a_token_head_labels_tokens(tmp_path: Path) -> None:
    head = opened(small_head(tmp_path, kind="token", says=1))
    found = head.predict(states(3))
    assert isinstance(found, TokenPrediction)
    assert [(span.label, span.first, span.last) for span in found.spans] == [
        ("person", 0, 1),
        ("person", 1, 2),
        ("person", 2, 3),
    ]


def test_a_head_says_the_same_of_the_same_states(tmp_path: Path) -> None:
    first, second = (opened(small_head(tmp_path / name)) for name in "ab")
    assert first.predict(states(7)) == second.predict(states(7))


def test_memory_grows_with_the_model(tmp_path: Path) -> None:
    small, large = (
        load_head(small_head(tmp_path / str(width), width=width)).manifest for width in (8, 8000)
    )
    assert estimate_memory(large) - estimate_memory(small) >= large.model.bytes - small.model.bytes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_fail_the_head_clearly(tmp_path: Path, value: float) -> None:
    model = constant([0, value, 0], [3])
    head = opened(small_head(tmp_path, model=model))
    with pytest.raises(
        UnavailableError, match="intent version 1 returns scores that are not finite"
    ):
        head.predict(states(2))


@pytest.mark.parametrize(("kind", "labels"), [("sequence", 2), ("sequence", 4), ("token", 3)])
def test_a_model_with_other_labels_than_the_manifest_is_refused(
    tmp_path: Path, kind: str, labels: int
) -> None:
    directory = small_head(tmp_path, kind=kind, model=small_model(kind, labels))
    with pytest.raises(ArtefactError, match="its manifest promises float32"):
        opened(directory)


def test_a_head_of_another_kind_is_refused(tmp_path: Path) -> None:
    token = small_head(tmp_path / "a", kind="token", model=small_model("sequence", 5))
    whole = small_head(tmp_path / "b", model=small_model("token", len(LABELS)))
    for directory in (token, whole):
        with pytest.raises(ArtefactError, match="promises"):
            opened(directory)


def test_a_model_for_wider_states_is_refused(tmp_path: Path) -> None:
    directory = small_head(tmp_path, model=small_model("sequence", 3, width=WIDTH + 1))
    with pytest.raises(ArtefactError, match="cannot be run"):
        opened(directory)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="cannot be opened as a model"):
        opened(small_head(tmp_path, model=b"not a model"))


def test_a_model_with_another_input_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["states"], ["logits"])
    model = model_of([node], {}, WIDTH, ["tokens", WIDTH]).replace(b"states", b"stotes")
    with pytest.raises(ArtefactError, match="inputs are stotes"):
        opened(small_head(tmp_path, model=model))


def test_a_flipped_byte_of_the_model_is_refused(tmp_path: Path) -> None:
    directory = small_head(tmp_path)
    artefact = load_head(directory)
    flip_bit(directory / MODEL, (directory / MODEL).stat().st_size // 2)
    for attempt in (lambda: load_head(directory), lambda: open_head(artefact)):
        with pytest.raises(ArtefactError, match=r"head\.onnx is damaged"):
            attempt()
