"""Tests of the limits that exported models have to meet."""

from pathlib import Path

import pytest
import torch

from models.measuring.parity import largest_difference
from models.measuring.verify import TOLERANCE, EncoderParity, Verdict, check_limits
from models.network.architecture import Reader, load_body
from models.network.export import READER_OUTPUTS, export_graph

GOOD: dict[str, float] = {"dev-squad": 61.0, "dev-nq": 53.0}


def verdict(
    encoder: float = 1e-5,
    reader: float = 1e-5,
    cosine: float = 0.995,
    quantised: dict[str, float] = GOOD,
    max_loss: float = 0.5,
) -> Verdict:
    found = {name: {"fp32": GOOD[name], "int8": quantised[name]} for name in GOOD}
    return check_limits(EncoderParity(encoder, cosine), reader, found, max_loss)


def test_a_good_model_passes() -> None:
    assert verdict().faults == ()


def test_the_largest_allowed_loss_passes() -> None:
    assert verdict(quantised={"dev-squad": 60.5, "dev-nq": 54.0}).faults == ()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (verdict(encoder=0.1), "the encoder's ONNX graph differs"),
        (verdict(reader=float("nan")), "the reader's ONNX graph differs"),
        (verdict(cosine=0.9), "mean cosine of 0.9000"),
        (verdict(cosine=float("nan")), "mean cosine"),
        (
            verdict(quantised={"dev-squad": 61.0, "dev-nq": 52.0}),
            "int8 loses 1.00 points of exact match on dev-nq",
        ),
        (verdict(quantised={"dev-squad": float("nan"), "dev-nq": 53.0}), "on dev-squad"),
        (
            check_limits(None, 0, {"dev-nq": {"fp32": 53.0, "int8": 53.0, "bf16": 50.0}}, 0.5),
            "bf16 loses 3.00 points of exact match on dev-nq",
        ),
    ],
)
def test_the_verdict_names_every_fault(found: Verdict, said: str) -> None:
    assert len(found.faults) == 1
    assert said in found.faults[0]


@pytest.mark.parametrize("change", [1.0, float("nan")])
def test_a_graph_of_other_weights_is_refused(
    tiny_weights: Path, tmp_path: Path, change: float
) -> None:
    torch.manual_seed(5)
    reader, graph = Reader(load_body(tiny_weights)).eval(), tmp_path / "reader.onnx"
    export_graph(reader, graph)
    with torch.no_grad():
        reader.span.bias.add_(change)
    tokenizer = tiny_weights / "tokenizer.json"
    difference = largest_difference(reader, graph, READER_OUTPUTS, tokenizer, ["who won the tour"])
    assert difference > TOLERANCE
    assert verdict(reader=difference).faults
