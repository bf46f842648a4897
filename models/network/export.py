"""Networks as ONNX graphs: in float32, then with int8 weights and an int8 embedding table.

Knows PyTorch's exporter and ONNX Runtime's quantiser. `verify` decides whether a graph is good
enough.
"""

import logging
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel

from models.network.architecture import Encoder, dummy_inputs

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
ENCODER_OUTPUTS = ("embedding",)
READER_OUTPUTS = ("start_logits", "end_logits", "relevance_logit")
OPSET = 17


def export(network: nn.Module, path: Path) -> None:
    """Writes `network` (an `Encoder` or a `Reader`) in float32 to `path`."""
    outputs = ENCODER_OUTPUTS if isinstance(network, Encoder) else READER_OUTPUTS
    export_batched(network, path, outputs, dummy_inputs())


def export_batched(
    network: nn.Module, path: Path, outputs: Sequence[str], inputs: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Writes any network over `INPUTS` in float32; `inputs` are int64 [1, tokens] of valid ids."""
    axes = {name: {0: "batch", 1: "tokens"} for name in INPUTS}
    axes |= {name: {0: "batch", 1: "tokens"} for name in outputs if name in READER_OUTPUTS[:2]}
    axes |= {name: {0: "batch"} for name in outputs if name not in READER_OUTPUTS[:2]}
    trace(network, path, inputs=dict(zip(INPUTS, inputs, strict=True)), outputs=outputs, axes=axes)


def trace(
    network: nn.Module,
    path: Path,
    *,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    axes: Mapping[str, Mapping[int, str]],
) -> None:
    """Writes any network in float32.

    Args:
        network: called with the inputs, in their order
        path: file of the graph
        inputs: examples, by the names in the graph
        outputs: names in the graph
        axes: names of the dynamic axes, by input or output and place

    """
    network.eval()
    with torch.no_grad(), warnings.catch_warnings():
        # tracing is deprecated in favour of an exporter that needs another package (onnxscript)
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


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


class RowQuantisedEmbedding(nn.Module):
    """An embedding that is stored as int8 [tokens, width] with float32 scales [tokens, 1]."""

    levels: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("levels", (weight / scale).round().to(torch.int8))

    def forward(self, ids: Tensor) -> Tensor:
        """int64 [...] to float32 [..., width]."""
        rows = nn.functional.embedding(ids, self.levels)
        return rows.float() * nn.functional.embedding(ids, self.scale)


def shrink_embeddings(body: BertModel | DistilBertModel) -> None:
    """Replaces the body's token embeddings by their int8 form, for export."""
    table = body.embeddings.word_embeddings.weight.detach()
    setattr(body.embeddings, "word_embeddings", RowQuantisedEmbedding(table))  # noqa: B010


_NORMALISATION = "LayerNormalization"
_DEPTH = 2 / 3
"""Share of the layers that are below the states."""


def states_of(graph: Path) -> str:
    """Returns the name of the value [1, tokens, width] that holds the states; empty if there is
    none.
    """
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    found = [str(node.output[0]) for node in nodes if node.op_type == _NORMALISATION]
    # that of the embeddings, then two a layer
    layers = len(found) // 2
    if not layers or len(found) % 2 == 0:
        return found[-1] if found else ""
    return found[2 * max(round(_DEPTH * layers), 1)]
