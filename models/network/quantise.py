"""Turning float32 graphs into dynamic int8 ones.

Weights become int8 once, per output channel; activations become uint8 at run time, per tensor.
Knows ONNX Runtime's quantiser; whether the result is good enough is `verify`'s to say.
"""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process


def quantise(source: Path, target: Path, keep_float: Sequence[str] = ()) -> None:
    """Writes `source` with int8 weights to `target`.

    Nodes whose name has one of `keep_float` in it stay in float32.
    """
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        prepared = Path(directory) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        nodes = onnx.load(prepared).graph.node
        quantize_dynamic(
            str(prepared),
            str(target),
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=[n.name for n in nodes if any(part in n.name for part in keep_float)],
            extra_options={"MatMulConstBOnly": True},
        )
