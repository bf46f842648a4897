"""Models in OpenVINO, if it is installed (the extra `openvino`).

OpenVINO is fast for float models on processors that multiply bfloat16 matrices (AMX). It is slow
for models that were quantised for ONNX Runtime, so `winnow.inference.runtime` does not choose it
for them.
"""

import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from winnow.errors import ArtefactError, StoppedError
from winnow.inference.session import Inputs, Outputs
from winnow.inference.stop_signal import StopSignal
from winnow.packaged import extra

_first_array = threading.Lock()


def installed() -> bool:
    """Whether OpenVINO can be imported."""
    return find_spec("openvino") is not None


class OpenVinoSession:
    """A model in OpenVINO on the CPU, with one request object per thread."""

    def __init__(
        self,
        path: Path,
        outputs: Sequence[str],
        *,
        bfloat16: bool,
        intra_op_threads: int = 1,
        runs: int = 1,
        extension: bytes = b"",
    ) -> None:
        """Opens and compiles `path`, which takes seconds.

        `runs`: maximum number of concurrent runs. `extension`: is appended to the model
        (`winnow.inference.inner_output`).

        Raises:
            ArtefactError: OpenVINO is missing or broken, `path` is not a model, or it lacks one of
                `outputs`.

        """
        if not installed():
            raise ArtefactError(f"OpenVINO is not installed: {extra('openvino')}")
        # with a preloaded allocator such as jemalloc, OpenVINO's threading library would free
        # memory with the wrong allocator, which ends the process (oneTBB #1645)
        os.environ.setdefault("TBB_ENABLE_SANITIZERS", "1")
        try:
            import openvino  # noqa: PLC0415 (an extra)
        except Exception as error:  # loading native libraries may fail in any way
            raise ArtefactError(f"OpenVINO cannot be imported: {error}") from error
        with _first_array:
            # the binding imports numpy when it gets its first array; two threads that pass it
            # arrays at that moment deadlock (OpenVINO 2026.4)
            openvino.Tensor(np.zeros(1, np.int64))
        properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
            "INFERENCE_NUM_THREADS": intra_op_threads * runs,
            "NUM_STREAMS": runs,
            "PERFORMANCE_HINT": "LATENCY",
            # otherwise every process on the machine would bind its threads to the first cores
            "ENABLE_CPU_PINNING": False,
        }
        core = openvino.Core()
        try:
            model = path.read_bytes() + extension if extension else str(path)
            self._model = core.compile_model(core.read_model(model), "CPU", properties)
        except RuntimeError as error:
            raise ArtefactError(f"{path} cannot be opened as a model: {error}") from error
        present = {name for output in self._model.outputs for name in output.get_names()}
        if missing := set(outputs) - present:
            raise ArtefactError(f"{path} has no output {', '.join(sorted(missing))}")
        self._outputs = [self._model.output(name) for name in outputs]
        self._local = threading.local()

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        """Runs the model; returns the outputs in the order given to the constructor.

        A run that has begun is never cancelled. After a cancelled run, a dynamically shaped graph
        keeps its old shapes, and the next run fails (OpenVINO 2026.4).

        Raises:
            StoppedError: `stop` was set before the run began.

        """
        if stop and stop.is_set:
            raise StoppedError("the run was stopped before it began")
        request = getattr(self._local, "request", None)
        if request is None:
            request = self._local.request = self._model.create_infer_request()
        # inputs are shared, not copied into the request's tensors: reshaping tensors in two threads
        # at the same time deadlocked (OpenVINO 2026.4)
        outputs_by_port = request.infer(dict(inputs), share_inputs=True)
        return [outputs_by_port[output].copy() for output in self._outputs]
