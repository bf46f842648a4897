"""What a loaded model is to the rest of the system.

Knows arrays in and arrays out; the runtimes behind it have files of their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.inference.stop import Stop

Inputs = Mapping[str, NDArray[Any]]
Outputs = list[NDArray[np.float32]]


class Session(Protocol):
    """A loaded model. Safe to run from several threads at once."""

    def run(self, inputs: Inputs, stop: Stop | None = None) -> Outputs:
        """All outputs of the model for one batch.

        Raises:
            StoppedError: `stop` was set before it began, or while it went on if it can be ended.

        """


def model_inputs(ids: list[int], types: list[int]) -> dict[str, NDArray[np.int64]]:
    """Inputs for one unpadded sequence: each int64 [1, tokens]."""
    return {
        "input_ids": np.array([ids], dtype=np.int64),
        "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
        "token_type_ids": np.array([types], dtype=np.int64),
    }


def padded_inputs(sequences: Sequence[list[int]]) -> dict[str, NDArray[np.int64]]:
    """Inputs for several sequences of segment 0, each int64 [sequences, longest]; padding is 0, and
    masked.
    """
    shape = (len(sequences), max(map(len, sequences)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
