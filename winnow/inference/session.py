"""One way to open a model with ONNX Runtime.

One intra-op thread and no spinning: parallelism comes from reading several passages at once, and
two sessions that each own the machine fight over it (onnxruntime #10273, #17011).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from winnow.errors import ArtefactError


class Session(Protocol):
    """A loaded model. Safe to run from several threads at once."""

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """All outputs of the model for one batch."""


class OnnxSession:
    """A model in ONNX Runtime on the CPU."""

    def __init__(self, path: Path, outputs: list[str]) -> None:
        """Opens `path`.

        Raises:
            ArtefactError: it is not a model, or lacks one of `outputs`.

        """
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), _options(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises several unrelated types
            raise ArtefactError(f"{path} cannot be opened as a model: {error}") from error
        self._outputs = outputs
        present = {output.name for output in self._session.get_outputs()}
        if missing := set(outputs) - present:
            raise ArtefactError(f"{path} has no output {', '.join(sorted(missing))}")

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """All outputs, in the order asked for at construction."""
        return list(self._session.run(self._outputs, dict(inputs)))


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # the arena would keep what the longest input took, for ever (onnxruntime #11627)
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options


def model_inputs(ids: list[int], types: list[int]) -> dict[str, NDArray[np.int64]]:
    """Inputs for one unpadded sequence: each int64 [1, tokens]."""
    return {
        "input_ids": np.array([ids], dtype=np.int64),
        "attention_mask": np.ones((1, len(ids)), dtype=np.int64),
        "token_type_ids": np.array([types], dtype=np.int64),
    }
