"""Checks that an exported graph computes what its network does, and holds its weights bit for bit.

Outputs are compared over synthetic sequences. Most words of a vocabulary are not among them, so the
weights themselves are compared, too.
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

from models.exporting.files import UNFAITHFUL, ParityError
from models.measuring.verify import TOLERANCE
from models.network.export import INPUTS
from winnow.inference.onnx import OnnxSession

_LENGTHS = (2, 3, 8, 33, 128, 320)
_PADDED = (9, 5)

Sequences = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Ids, mask and token types, each [batch, tokens]."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Limits of the synthetic sequences that a network can run on."""

    tokens: int
    """Size of the vocabulary."""
    positions: int
    """The longest sequence."""

    def __iter__(self) -> Iterator[Sequences]:
        """One sequence of each length, then two of different length, padded, in one batch."""
        chance = np.random.default_rng(0)
        for length in _LENGTHS:
            if length <= self.positions:
                yield self._draw(chance, [length])
        yield self._draw(chance, list(_PADDED))

    def _draw(self, chance: np.random.Generator, lengths: list[int]) -> Sequences:
        shape = (len(lengths), max(lengths))
        ids = chance.integers(0, self.tokens, shape)
        places = np.arange(max(lengths))
        mask = (places < np.array(lengths)[:, None]).astype(np.int64)
        types = np.broadcast_to(places >= max(lengths) // 2, shape).astype(np.int64)
        return ids, mask, types


def require_parity(
    network: nn.Module, graph: Path, outputs: Sequence[str], probes: Probes, what: str
) -> float:
    """Returns the largest absolute difference between `network` and `graph`, over every output.

    Raises:
        ParityError: it is more than `TOLERANCE`, or not a number.

    """
    session = OnnxSession(graph, list(outputs))
    worst = 0.0
    for sequences in probes:
        for name, want, got in zip(
            outputs, _torch(network, sequences), _onnx(session, sequences), strict=True
        ):
            difference = float(np.abs(want - got).max())
            if not difference <= TOLERANCE:
                raise ParityError(
                    f"the ONNX graph of {what} differs from PyTorch by {difference:.2g} in {name} "
                    f"at {sequences[0].shape[1]} tokens, at most {TOLERANCE:g} is allowed: "
                    f"{UNFAITHFUL}"
                )
            worst = max(worst, difference)
    return worst


def relative_change(
    exact: Path, small: Path, outputs: Sequence[str], probes: Probes, width: int
) -> float:
    """Returns the change of outputs from `exact` to `small`, relative to their norm.

    Of each output the first `width` columns are compared.
    """
    sessions = [OnnxSession(graph, list(outputs)) for graph in (exact, small)]
    off = whole = 0.0
    for sequences in probes:
        for want, got in zip(*(_onnx(session, sequences) for session in sessions), strict=True):
            off += float(np.square((got - want)[..., :width]).sum())
            whole += float(np.square(want[..., :width]).sum())
    return float(np.sqrt(off / whole))


def _torch(network: nn.Module, sequences: Sequences) -> list[NDArray[np.float32]]:
    with torch.no_grad():
        found = network(*(torch.from_numpy(values) for values in sequences))
    return [value.numpy() for value in (found if isinstance(found, tuple) else (found,))]


def _onnx(session: OnnxSession, sequences: Sequences) -> list[NDArray[np.float32]]:
    return session.run(dict(zip(INPUTS, sequences, strict=True)))


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
                f"the ONNX graph of {what} has no weight equal to {name}: {UNFAITHFUL}"
            )


def _digest(values: NDArray[np.float32]) -> str:
    shape = repr((values.shape, values.dtype.name)).encode()
    return hashlib.sha256(shape + values.tobytes()).hexdigest()
