"""Exports a network as an ONNX graph and compares the graph with the network.

The float32 graph is compared before it is quantised to int8.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import torch

from models.exporting.encoder import CheckpointEncoder
from models.exporting.files import REPORT_ADVICE, ParityError
from models.exporting.layout import Checkpoint
from models.exporting.network import find_body
from models.exporting.parity import Probes, relative_change, require_parity, require_weights
from models.exporting.reader import CheckpointReader
from models.network.export import (
    ENCODER_OUTPUTS,
    READER_OUTPUTS,
    export_batched,
    quantise_embeddings,
    quantise_graph,
)
from winnow.files.opened import sha256

Network = CheckpointEncoder | CheckpointReader
MAX_DRIFT = 0.5
"""Maximum change of the outputs by int8, relative to float32. A larger change breaks a network.

The accuracy that a smaller change costs has to be measured (`winnow evaluate`).
"""
_TRACED_TOKENS = 12
"""Length of the sequence that is traced."""


class Precision(StrEnum):
    """Precision of the weights in a bundle."""

    FP32 = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Differences between a graph and its network."""

    difference: float
    """Largest absolute difference of any output in float32."""
    drift: float
    """Relative change of the outputs by int8; zero in float32."""


def write_graph(
    network: Network,
    target: Path,
    precision: Precision,
    probes: Probes,
    description: str,
) -> Fidelity:
    """Writes `network` to `target` as an ONNX graph.

    With int8, the embedding weights of `network` itself are quantised in place.
    `description` names the network in errors.

    Raises:
        ParityError: the graph lacks a weight, its outputs differ, or int8 changes them too much.

    """
    with TemporaryDirectory(dir=target.parent) as directory:
        float_graph = target if precision is Precision.FP32 else Path(directory) / "exact.onnx"
        outputs = _output_names(network)
        _export_traced(network, float_graph, probes, description)
        require_weights(network, float_graph, description)
        difference = require_parity(network, float_graph, outputs, probes, description)
        if precision is Precision.FP32:
            return Fidelity(difference, 0.0)
        quantise_embeddings(find_body(network))
        plain = Path(directory) / "plain.onnx"
        _export_traced(network, plain, probes, description)
        quantise_graph(plain, target, _head_nodes(network, plain))
        return Fidelity(
            difference, _measure_drift(network, float_graph, target, probes, description)
        )


def _export_traced(network: Network, path: Path, probes: Probes, description: str) -> None:
    ids = torch.arange(_TRACED_TOKENS).unsqueeze(0) % probes.vocabulary_size
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    try:
        export_batched(network, path, _output_names(network), inputs)
    except Exception as error:  # the tracer raises any exception of the network
        raise ParityError(f"{description} cannot be exported: {error}; {REPORT_ADVICE}") from error


def _output_names(network: Network) -> tuple[str, ...]:
    return ENCODER_OUTPUTS if isinstance(network, CheckpointEncoder) else READER_OUTPUTS


def _head_nodes(network: Network, graph: Path) -> list[str]:
    """Returns the nodes of a reader's heads, which stay in float.

    Heads are small, and their errors would change the answer directly.
    """
    if isinstance(network, CheckpointEncoder):
        return []
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    return [node.name for node in nodes if set(node.name.split("/")) & set(network.heads)]


def _measure_drift(
    network: Network, float_graph: Path, quantised: Path, probes: Probes, description: str
) -> float:
    # leaves out the additional coordinate of inner products, which hardly changes
    width = network.width if isinstance(network, CheckpointEncoder) else probes.max_tokens
    drift = relative_change(float_graph, quantised, _output_names(network), probes, width)
    if not drift <= MAX_DRIFT:
        raise ParityError(
            f"int8 changes the outputs of {description} by {drift:.0%}, more than {MAX_DRIFT:.0%}: "
            "use --precision fp32"
        )
    return drift


@dataclass(frozen=True, slots=True)
class ExportedNetwork:
    """An exported network of a bundle."""

    checkpoint: Checkpoint
    file: str
    """Name of the graph in the bundle."""
    fidelity: Fidelity

    def provenance(self) -> dict[str, Any]:
        """Returns the origin of the weights and the differences of the graph, for the manifest."""
        return {
            "directory": self.checkpoint.directory.name,
            "architecture": self.checkpoint.architecture,
            "weights": {self.checkpoint.weights.name: sha256(self.checkpoint.weights)},
            "fidelity": asdict(self.fidelity),
        }


@dataclass(frozen=True, slots=True)
class GraphWriter:
    """Writes the graphs of a bundle, at one precision."""

    directory: Path
    precision: Precision
    report: Callable[[str], None]

    def write(
        self, role: str, network: Network, checkpoint: Checkpoint, file: str
    ) -> ExportedNetwork:
        """Writes the graph of `network` and reports how far the graph differs.

        Raises:
            ParityError: the graph differs too much.

        """
        description = f"the {role} ({checkpoint.architecture} of {checkpoint.directory})"
        weights = sum(each.numel() for each in network.parameters()) / 1e6
        probes = Probes(checkpoint.vocabulary_size, checkpoint.max_tokens)
        fidelity = write_graph(network, self.directory / file, self.precision, probes, description)
        drift = f"; int8 changes outputs by {fidelity.drift:.2%}" if fidelity.drift else ""
        self.report(
            f"{role}: {checkpoint.architecture}, {weights:.1f} M weights; ONNX differs from "
            f"PyTorch by {fidelity.difference:.1e}{drift}"
        )
        return ExportedNetwork(checkpoint, file, fidelity)
