"""Whether every weight of a network lies in its graph, bit for bit.

Outputs tell whether a graph computes the right thing on the sequences that were tried. Most words
of a vocabulary are not among those, so the weights themselves are compared, too.
"""

import hashlib
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from models.exporting.errors import UNFAITHFUL, ParityError


def require_weights(network: nn.Module, graph: Path, what: str) -> None:
    """Refuses a graph that lacks a weight of `network`, in float32.

    Raises:
        ParityError: it does.

    """
    held = {
        _digest(numpy_helper.to_array(tensor)) for tensor in onnx.load(str(graph)).graph.initializer
    }
    for name, weight in network.named_parameters():
        values = weight.detach().numpy()
        # the exporter turns a layer's matrix the other way round
        if not {_digest(values), _digest(values.T)} & held:
            raise ParityError(
                f"the ONNX graph of {what} does not hold the weight {name} as it is: {UNFAITHFUL}"
            )


def _digest(values: NDArray[np.float32]) -> str:
    shape = repr((values.shape, values.dtype.name)).encode()
    return hashlib.sha256(shape + values.tobytes()).hexdigest()
