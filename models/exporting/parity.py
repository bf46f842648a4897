"""Compares the outputs and weights of an exported graph with those of its network.

Outputs are compared on synthetic sequences. These lack most words of a vocabulary, so the weights
are compared bit by bit, too.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from models.exporting.files import REPORT_ADVICE, ParityError
from models.measuring.verify import TOLERANCE
from models.network.export import INPUTS
from winnow.inference.onnx import OnnxSession

_LENGTHS = (2, 3, 8, 33, 128, 320)
_PADDED_LENGTHS = (9, 5)

Sequences = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Ids, mask and token types, each [batch, tokens]."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Synthetic sequences that a network can run on."""

    vocabulary_size: int
    """Number of token ids to draw from."""
    max_tokens: int
    """Length of the longest sequence."""

    def __iter__(self) -> Iterator[Sequences]:
        """Yields one sequence of each length, then a batch of two padded sequences."""
        generator = np.random.default_rng(0)
        for length in _LENGTHS:
            if length <= self.max_tokens:
                yield self._draw(generator, [length])
        yield self._draw(generator, list(_PADDED_LENGTHS))

    def _draw(self, generator: np.random.Generator, lengths: list[int]) -> Sequences:
        shape = (len(lengths), max(lengths))
        ids = generator.integers(0, self.vocabulary_size, shape)
        positions = np.arange(max(lengths))
        mask = (positions < np.array(lengths)[:, None]).astype(np.int64)
        types = np.broadcast_to(positions >= max(lengths) // 2, shape).astype(np.int64)
        return ids, mask, types


def require_parity(
    network: nn.Module, graph: Path, outputs: Sequence[str], probes: Probes, description: str
) -> float:
    """Returns the largest absolute difference of any output of `network` and `graph`.

    `description` names the network in errors.

    Raises:
        ParityError: the difference exceeds `TOLERANCE` or is not a number.

    """
    session = OnnxSession(graph, list(outputs))
    max_difference = 0.0
    for sequences in probes:
        for name, expected, actual in zip(
            outputs, _run_torch(network, sequences), _run_onnx(session, sequences), strict=True
        ):
            difference = float(np.abs(expected - actual).max())
            if not difference <= TOLERANCE:
                raise ParityError(
                    f"the ONNX graph of {description} differs from PyTorch by {difference:.2g} in "
                    f"{name} at {sequences[0].shape[1]} tokens, but only {TOLERANCE:g} is allowed: "
                    f"{REPORT_ADVICE}"
                )
            max_difference = max(max_difference, difference)
    return max_difference


def relative_change(
    float_graph: Path, quantised: Path, outputs: Sequence[str], probes: Probes, width: int
) -> float:
    """Returns the change of outputs from `float_graph` to `quantised`, relative to their norm.

    Compares the first `width` columns of each output.
    """
    sessions = [OnnxSession(graph, list(outputs)) for graph in (float_graph, quantised)]
    squared_error = squared_norm = 0.0
    for sequences in probes:
        for expected, actual in zip(
            *(_run_onnx(session, sequences) for session in sessions), strict=True
        ):
            squared_error += float(np.square((actual - expected)[..., :width]).sum())
            squared_norm += float(np.square(expected[..., :width]).sum())
    return float(np.sqrt(squared_error / squared_norm))


def _run_torch(network: nn.Module, sequences: Sequences) -> list[NDArray[np.float32]]:
    with torch.no_grad():
        outputs = network(*(torch.from_numpy(values) for values in sequences))
    return [each.numpy() for each in (outputs if isinstance(outputs, tuple) else (outputs,))]


def _run_onnx(session: OnnxSession, sequences: Sequences) -> list[NDArray[np.float32]]:
    return session.run(dict(zip(INPUTS, sequences, strict=True)))


def require_weights(network: nn.Module, graph: Path, description: str) -> None:
    """Checks that `graph` contains every float32 weight of `network`, bit by bit.

    Raises:
        ParityError: the graph lacks a weight.

    """
    digests = {
        _digest(numpy_helper.to_array(tensor)) for tensor in onnx.load(str(graph)).graph.initializer
    }
    for name, weight in network.named_parameters():
        values = weight.detach().numpy()
        # the exporter transposes the matrices of linear layers
        if not {_digest(values), _digest(values.T)} & digests:
            raise ParityError(
                f"the ONNX graph of {description} has no weight equal to {name}: {REPORT_ADVICE}"
            )


def _digest(values: NDArray[np.float32]) -> str:
    shape = repr((values.shape, values.dtype.name)).encode()
    return hashlib.sha256(shape + values.tobytes()).hexdigest()
