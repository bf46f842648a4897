"""A network to an ONNX graph of a bundle, at a precision, checked against the network.

Knows the order: float32 first, parity, and only then int8.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import torch

from models.exporting.encoder import CheckpointEncoder
from models.exporting.errors import UNFAITHFUL, ParityError
from models.exporting.network import body
from models.exporting.parity import Probes, drift, require_parity
from models.exporting.reader import CheckpointReader
from models.exporting.weights import require_weights
from models.network.embedding_table import shrink_embeddings
from models.network.export import ENCODER_OUTPUTS, READER_OUTPUTS, trace
from models.network.quantise import quantise

Network = CheckpointEncoder | CheckpointReader
MOST_DRIFT = 0.5
"""Of int8 outputs, relative to float32. Beyond it a network is broken; what less costs in accuracy
only questions can tell (`winnow evaluate`).
"""
_TRACED = 12
"""Tokens of the sequence that is traced."""


class Precision(StrEnum):
    """What the weights of a bundle are stored as."""

    FP32 = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How near a graph is to its network."""

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
        trace(network, path, _outputs(network), inputs)
    except Exception as error:  # the tracer raises whatever the network does
        raise ParityError(f"{what} cannot be exported: {error}; {UNFAITHFUL}") from error


def _outputs(network: Network) -> tuple[str, ...]:
    return ENCODER_OUTPUTS if isinstance(network, CheckpointEncoder) else READER_OUTPUTS


def _heads(network: Network, graph: Path) -> list[str]:
    """The nodes of a reader's heads: they are small, and what they lose is lost to the answer."""
    if isinstance(network, CheckpointEncoder):
        return []
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    return [node.name for node in nodes if set(node.name.split("/")) & set(network.heads)]


def _drift(network: Network, exact: Path, small: Path, probes: Probes, what: str) -> float:
    # without the coordinate that inner products need: it hardly moves, and would hide the rest
    width = network.width if isinstance(network, CheckpointEncoder) else probes.positions
    found = drift(exact, small, _outputs(network), probes, width)
    if not found <= MOST_DRIFT:
        raise ParityError(
            f"int8 changes the outputs of {what} by {found:.0%}, more than {MOST_DRIFT:.0%}: "
            "use --precision fp32"
        )
    return found
