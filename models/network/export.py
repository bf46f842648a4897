"""Writing networks as ONNX graphs with dynamic batch and length.

Knows PyTorch's exporter; knows nothing of precision, which `quantise` changes afterwards.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from models.network.architecture import Encoder, dummy_inputs

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
ENCODER_OUTPUTS = ("embedding",)
READER_OUTPUTS = ("start_logits", "end_logits", "relevance_logit")
OPSET = 17


def export(network: nn.Module, path: Path) -> None:
    """Writes `network` (an `Encoder` or a `Reader`) in float32 to `path`."""
    outputs = ENCODER_OUTPUTS if isinstance(network, Encoder) else READER_OUTPUTS
    trace(network, path, outputs, dummy_inputs())


def trace(
    network: nn.Module, path: Path, outputs: Sequence[str], inputs: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Writes any network over `INPUTS` in float32; `inputs` are int64 [1, tokens] of valid ids."""
    axes = {name: {0: "batch", 1: "tokens"} for name in INPUTS}
    axes |= {name: {0: "batch", 1: "tokens"} for name in outputs if name in READER_OUTPUTS[:2]}
    axes |= {name: {0: "batch"} for name in outputs if name not in READER_OUTPUTS[:2]}
    network.eval()
    with torch.no_grad(), warnings.catch_warnings():
        # tracing is deprecated in favour of an exporter that needs another package (onnxscript)
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            inputs,
            str(path),
            input_names=list(INPUTS),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
