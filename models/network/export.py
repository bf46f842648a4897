"""Exports networks as ONNX graphs in float32, and quantises weights and embeddings to int8."""

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


def export_graph(network: nn.Module, path: Path) -> None:
    """Writes the float32 graph of an `Encoder` or a `Reader`."""
    outputs = ENCODER_OUTPUTS if isinstance(network, Encoder) else READER_OUTPUTS
    export_batched(network, path, outputs, dummy_inputs())


def export_batched(
    network: nn.Module, path: Path, outputs: Sequence[str], inputs: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Writes the float32 graph of a network over `INPUTS`.

    `inputs` are example ids, mask and token types, each int64 [1, tokens].
    """
    axes = {name: {0: "batch", 1: "tokens"} for name in INPUTS}
    axes |= {name: {0: "batch", 1: "tokens"} for name in outputs if name in READER_OUTPUTS[:2]}
    axes |= {name: {0: "batch"} for name in outputs if name not in READER_OUTPUTS[:2]}
    trace_graph(
        network, path, inputs=dict(zip(INPUTS, inputs, strict=True)), outputs=outputs, axes=axes
    )


def trace_graph(
    network: nn.Module,
    path: Path,
    *,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    axes: Mapping[str, Mapping[int, str]],
) -> None:
    """Traces a network and writes its float32 graph.

    Args:
        network: called with the inputs in their order.
        path: file of the graph.
        inputs: example inputs by name.
        outputs: names of the outputs.
        axes: names of the dynamic axes, by input or output and index of the axis.

    """
    network.eval()
    with torch.no_grad(), warnings.catch_warnings():
        # the exporter that replaces tracing needs another package (onnxscript)
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


def quantise_graph(source: Path, target: Path, keep_float: Sequence[str] = ()) -> None:
    """Writes the graph `source` with int8 weights to `target`.

    Nodes whose name contains one of `keep_float` stay in float32.
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
    """An embedding table in int8 [vocabulary, width] with float32 scales [vocabulary, 1]."""

    levels: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("levels", (weight / scale).round().to(torch.int8))

    def forward(self, ids: Tensor) -> Tensor:
        """Maps int64 [...] to float32 [..., width]."""
        rows = nn.functional.embedding(ids, self.levels)
        return rows.float() * nn.functional.embedding(ids, self.scale)


def quantise_embeddings(body: BertModel | DistilBertModel) -> None:
    """Replaces the token embeddings of `body` by int8 embeddings, in place, for export."""
    table = body.embeddings.word_embeddings.weight.detach()
    setattr(body.embeddings, "word_embeddings", RowQuantisedEmbedding(table))  # noqa: B010


_NORMALISATION = "LayerNormalization"
_STATES_DEPTH = 2 / 3
"""Depth of the layer whose states heads use, as a share of the encoder's layers."""


def find_states_output(graph: Path) -> str:
    """Returns the name of the graph's value with the states that heads use, [1, tokens, width].

    Returns an empty string if the graph has no layer normalisation.
    """
    outputs = _normalised(graph)
    # one normalisation of the embeddings, then two in every layer
    layers = len(outputs) // 2
    if not layers or len(outputs) % 2 == 0:
        return outputs[-1] if outputs else ""
    return outputs[2 * max(round(_STATES_DEPTH * layers), 1)]


def layer_outputs(graph: Path) -> list[str]:
    """Returns the names of the graph's values with the states after each layer of an encoder.

    The first one has the embeddings. Every layer ends with the second of its two normalisations.
    """
    return _normalised(graph)[::2]


def _normalised(graph: Path) -> list[str]:
    """Returns the names of the outputs of all layer normalisations, in the graph's order."""
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    return [str(node.output[0]) for node in nodes if node.op_type == _NORMALISATION]
