"""Tests of outlier channels: the product is the same and int8 loses less."""

from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

from models.network.architecture import Reader, dummy_inputs, load_body
from models.network.export import READER_OUTPUTS, export_graph, quantise_graph
from models.network.neurons import FLOAT_PART, OutlierSplitLinear, split_outliers
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import model_inputs


def test_a_split_layer_gives_the_same_product() -> None:
    torch.manual_seed(0)
    linear, values = nn.Linear(8, 5), torch.randn(2, 3, 8)
    split = OutlierSplitLinear(linear, [1, 6])
    torch.testing.assert_close(split(values), linear(values))


def reader_with_an_outlier(weights: Path) -> Reader:
    """A reader one of whose channels is a hundred times as large as the others."""
    torch.manual_seed(0)
    reader = Reader(load_body(weights)).eval()
    with torch.no_grad():
        for name, module in reader.body.named_modules():
            if isinstance(module, nn.Linear) and name.endswith("intermediate.dense"):
                module.bias[3] = 100
            if isinstance(module, nn.Linear) and name.endswith("output.dense"):
                module.weight.mul_(20)
    return reader


def test_the_channels_that_are_split_off_are_the_largest(tiny_weights: Path) -> None:
    reader = reader_with_an_outlier(tiny_weights)
    split_outliers(reader.body, [dummy_inputs()], channels=1)
    layers = [module for module in reader.body.modules() if isinstance(module, OutlierSplitLinear)]
    assert len(layers) == 2 * len(reader.body.encoder.layer)
    assert [layer.outlier_channels.tolist() for layer in layers[1::2]] == [[3], [3]]


def test_int8_loses_less_without_outliers(tiny_weights: Path, tmp_path: Path) -> None:
    reader = reader_with_an_outlier(tiny_weights)
    exact, plain, split = (tmp_path / f"{name}.onnx" for name in ("exact", "plain", "split"))
    export_graph(reader, exact)
    quantise_graph(exact, plain, ["/span/MatMul"])
    split_outliers(reader.body, [dummy_inputs()], channels=1)
    export_graph(reader, tmp_path / "parts.onnx")
    quantise_graph(tmp_path / "parts.onnx", split, ["/span/MatMul", FLOAT_PART])
    inputs = model_inputs(list(range(1000, 1012)), [0] * 12)
    want, lossy, kept = (
        OnnxSession(path, list(READER_OUTPUTS)).run(inputs)[0] for path in (exact, plain, split)
    )
    assert np.abs(kept - want).max() < np.abs(lossy - want).max() / 4
    quantised = {node.name for node in onnx.load(split).graph.node if "Integer" in node.op_type}
    assert quantised
    assert not any(FLOAT_PART in name for name in quantised)
