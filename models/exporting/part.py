"""One network of a bundle: from its directory to its graph.

Knows what became of a network; what the manifest says of it is `manifest`'s.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from models.exporting.graph import Fidelity, Network, Precision, write_graph
from models.exporting.layout import Checkpoint
from models.exporting.parity import Probes
from models.network.architecture import count_parameters
from winnow.files.opened import sha256


@dataclass(frozen=True, slots=True)
class Part:
    """Where a network came from and what became of it."""

    checkpoint: Checkpoint
    file: str
    fidelity: Fidelity

    def provenance(self) -> dict[str, Any]:
        """Which weights these are, and how near the graph is to them."""
        return {
            "directory": self.checkpoint.directory.name,
            "architecture": self.checkpoint.architecture,
            "weights": {self.checkpoint.weights.name: sha256(self.checkpoint.weights)},
            "fidelity": asdict(self.fidelity),
        }


@dataclass(frozen=True, slots=True)
class Workbench:
    """Where graphs are written, how, and who is told."""

    place: Path
    precision: Precision
    say: Callable[[str], None]

    def write(self, role: str, network: Network, checkpoint: Checkpoint, file: str) -> Part:
        """Writes the graph of one part and says how near it is to its network.

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
        return Part(checkpoint, file, fidelity)
