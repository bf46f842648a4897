"""A network as an ONNX graph of a bundle, at a precision, checked against the network.

Knows the order: float32 first, parity, and only then int8.
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
from models.exporting.files import UNFAITHFUL, ParityError
from models.exporting.layout import Checkpoint
from models.exporting.network import body
from models.exporting.parity import Probes, relative_change, require_parity, require_weights
from models.exporting.reader import CheckpointReader
from models.network.architecture import count_parameters
from models.network.export import (
    ENCODER_OUTPUTS,
    READER_OUTPUTS,
    export_batched,
    quantise,
    shrink_embeddings,
)
from winnow.files.opened import sha256

Network = CheckpointEncoder | CheckpointReader
MOST_DRIFT = 0.5
"""Most change of outputs by int8, relative to float32. Beyond it a network is broken. The accuracy
that a smaller change costs is measured by questions (`winnow evaluate`).
"""
_TRACED = 12
"""Tokens of the sequence that is traced."""


class Precision(StrEnum):
    """Precision of the stored weights of a bundle."""

    FP32 = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Differences between a graph and its network."""

    difference: float
    """The largest absolute difference of any output in float32."""
    drift: float
    """The relative change of the outputs by int8; zero in float32."""


def write_graph(
    network: Network,
    target: Path,
    precision: Precision,
    probes: Probes,
    what: str,
) -> Fidelity:
    """Writes `network` to `target`; int8 changes the network itself.

    Raises:
        ParityError: the graph lacks a weight, computes something else, or int8 leaves too little
            of it.

    """
    with TemporaryDirectory(dir=target.parent) as directory:
        exact = target if precision is Precision.FP32 else Path(directory) / "exact.onnx"
        outputs = _outputs(network)
        _trace(network, exact, probes, what)
        require_weights(network, exact, what)
        difference = require_parity(network, exact, outputs, probes, what)
        if precision is Precision.FP32:
            return Fidelity(difference, 0.0)
        shrink_embeddings(body(network))
        plain = Path(directory) / "plain.onnx"
        _trace(network, plain, probes, what)
        quantise(plain, target, _heads(network, plain))
        return Fidelity(difference, _drift(network, exact, target, probes, what))


def _trace(network: Network, path: Path, probes: Probes, what: str) -> None:
    ids = torch.arange(_TRACED).unsqueeze(0) % probes.tokens
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    try:
        export_batched(network, path, _outputs(network), inputs)
    except Exception as error:  # the tracer raises any exception of the network
        raise ParityError(f"{what} cannot be exported: {error}; {UNFAITHFUL}") from error


def _outputs(network: Network) -> tuple[str, ...]:
    return ENCODER_OUTPUTS if isinstance(network, CheckpointEncoder) else READER_OUTPUTS


def _heads(network: Network, graph: Path) -> list[str]:
    """Returns the nodes of a reader's heads: they are small, and what they lose is lost to the
    answer.
    """
    if isinstance(network, CheckpointEncoder):
        return []
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    return [node.name for node in nodes if set(node.name.split("/")) & set(network.heads)]


def _drift(network: Network, exact: Path, small: Path, probes: Probes, what: str) -> float:
    # without the coordinate that inner products need: it hardly moves, and would hide the rest
    width = network.width if isinstance(network, CheckpointEncoder) else probes.positions
    found = relative_change(exact, small, _outputs(network), probes, width)
    if not found <= MOST_DRIFT:
        raise ParityError(
            f"int8 changes the outputs of {what} by {found:.0%}, more than {MOST_DRIFT:.0%}: "
            "use --precision fp32"
        )
    return found


@dataclass(frozen=True, slots=True)
class ExportedNetwork:
    """A network of a bundle, with its checkpoint."""

    checkpoint: Checkpoint
    file: str
    fidelity: Fidelity

    def provenance(self) -> dict[str, Any]:
        """Returns the checkpoint's weights, and the differences of the graph."""
        return {
            "directory": self.checkpoint.directory.name,
            "architecture": self.checkpoint.architecture,
            "weights": {self.checkpoint.weights.name: sha256(self.checkpoint.weights)},
            "fidelity": asdict(self.fidelity),
        }


@dataclass(frozen=True, slots=True)
class GraphWriter:
    """Writes the graphs of a bundle, at one precision."""

    place: Path
    precision: Precision
    say: Callable[[str], None]

    def write(
        self, role: str, network: Network, checkpoint: Checkpoint, file: str
    ) -> ExportedNetwork:
        """Writes the graph of one network, and reports the differences between both.

        Raises:
            ParityError: it is not near enough.

        """
        what = f"the {role} ({checkpoint.architecture} of {checkpoint.directory})"
        weights = count_parameters(network) / 1e6
        probes = Probes(checkpoint.tokens, checkpoint.positions)
        fidelity = write_graph(network, self.place / file, self.precision, probes, what)
        drift = f"; int8 moves it by {fidelity.drift:.2%}" if fidelity.drift else ""
        self.say(
            f"{role}: {checkpoint.architecture}, {weights:.1f} M weights; ONNX differs from "
            f"PyTorch by {fidelity.difference:.1e}{drift}"
        )
        return ExportedNetwork(checkpoint, file, fidelity)
