"""The interface of a loaded model, builders of its inputs, and a session that pads inputs.

`onnx` and `openvino` implement the interface.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.inference.stop_signal import StopSignal

Inputs = Mapping[str, NDArray[Any]]
Outputs = list[NDArray[np.float32]]


class Session(Protocol):
    """A loaded model. Safe to run from several threads at once."""

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        """Runs one batch; returns all outputs of the model.

        Raises:
            StoppedError: `stop` was set before the run began, or during a run that can be stopped.

        """


def model_inputs(ids: list[int], types: list[int]) -> dict[str, NDArray[np.int64]]:
    """Returns the inputs for one unpadded sequence; each is int64 [1, tokens]."""
    return {
        "input_ids": np.array([ids], dtype=np.int64),
        "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
        "token_type_ids": np.array([types], dtype=np.int64),
    }


def padded_inputs(sequences: Sequence[list[int]]) -> dict[str, NDArray[np.int64]]:
    """Returns the inputs for several sequences; each is int64 [sequences, longest].

    Shorter sequences are padded with 0 and masked. All token types are 0.
    """
    shape = (len(sequences), max(map(len, sequences)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}


class PaddedSession:
    """A session that pads inputs to `length` tokens, with a mask; longer inputs are not changed.

    Used to measure the cost of padding. Services do not pad, because they run one sequence at a
    time.
    """

    def __init__(self, session: Session, length: int) -> None:
        self._session, self._length = session, length

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        """Runs the padded inputs; returns the outputs without the padding."""
        tokens = inputs["input_ids"].shape[1]
        missing = max(self._length - tokens, 0)
        filled = {name: np.pad(values, ((0, 0), (0, missing))) for name, values in inputs.items()}
        padded = tokens + missing
        return [
            output[:, :tokens] if output.ndim > 1 and output.shape[1] == padded else output
            for output in self._session.run(filled, stop)
        ]
