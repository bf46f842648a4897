"""Models in ONNX Runtime.

By default a run has one intra-op thread, without spinning. Parallelism comes from concurrent runs.
Sessions with many threads would compete for the cores (onnxruntime #10273, #17011).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime

from winnow.errors import ArtefactError, StoppedError
from winnow.inference.processor import cpu_features, multiplies_bytes_exactly
from winnow.inference.session import Inputs, Outputs
from winnow.inference.stop_signal import StopSignal

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_INSTALL = (
    "pip uninstall onnxruntime, then pip install 'onnxruntime-gpu[cuda,cudnn]' (they cannot be "
    "installed together), or choose another --runtime"
)


class OnnxSession:
    """A model in ONNX Runtime, on the CPU or on a GPU."""

    def __init__(
        self,
        path: Path,
        outputs: Sequence[str],
        *,
        intra_op_threads: int = 1,
        extension: bytes = b"",
        cuda: bool = False,
    ) -> None:
        """Opens `path`; `extension` is appended to the model (`winnow.inference.inner_output`).

        Raises:
            ArtefactError: `path` is not a model or lacks one of `outputs`, or `cuda` is set and
                there is no GPU.

        """
        execution_providers = providers(cuda, onnxruntime.get_available_providers())
        try:
            # given a path, the runtime reads the model in parts, which takes less memory
            model = path.read_bytes() + extension if extension else str(path)
            self._session = onnxruntime.InferenceSession(
                model, _options(intra_op_threads), providers=execution_providers
            )
        except Exception as error:  # onnxruntime raises several unrelated types
            raise ArtefactError(f"{path} cannot be opened as a model: {error}") from error
        if cuda:
            check_on_gpu(self._session.get_providers())
        self._outputs = list(outputs)
        present = {output.name for output in self._session.get_outputs()}
        if missing := set(outputs) - present:
            raise ArtefactError(f"{path} has no output {', '.join(sorted(missing))}")

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        """Runs the model; returns the outputs in the order given to the constructor.

        A stopped run ends before its next operator.

        Raises:
            StoppedError: `stop` was set before the run ended.

        """
        stop = stop or StopSignal()
        options = onnxruntime.RunOptions()
        try:
            with stop.on_stop(partial(setattr, options, "terminate", True)):
                return list(self._session.run(self._outputs, dict(inputs), options))
        except Exception as error:  # the type of the error is private
            if stop.is_set:
                raise StoppedError("the run was stopped") from error
            raise


def providers(cuda: bool, available: Sequence[str]) -> list[Any]:
    """Returns the execution providers for a model, best first.

    Raises:
        ArtefactError: `cuda` is set, but this build of ONNX Runtime does not support GPUs.

    """
    if not cuda:
        return [_CPU]
    if _CUDA not in available:
        raise ArtefactError(
            f"ONNX Runtime cannot use a GPU here: it has {', '.join(available)}; {_INSTALL}"
        )
    # by default, the arena would double its size whenever it grows
    return [(_CUDA, {"arena_extend_strategy": "kSameAsRequested"}), _CPU]


def check_on_gpu(used: Sequence[str]) -> None:
    """Raises ArtefactError if a session that needs a GPU runs on the CPU.

    If the GPU or a library is missing, ONNX Runtime only warns and runs on the CPU.
    """
    if _CUDA not in used:
        raise ArtefactError(
            "ONNX Runtime could not start on the GPU: is there one, and are CUDA and cuDNN "
            f"installed? {_INSTALL}"
        )


def _options(intra_op_threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = intra_op_threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # the kernel that is exact everywhere takes 1.6 times as long with AVX-512 and VNNI, and 1.1 to
    # 1.4 times as long without VNNI
    if not multiplies_bytes_exactly(cpu_features()):
        options.add_session_config_entry("session.x64quantprecision", "1")
    # the arena would keep the memory of the longest input for ever (onnxruntime #11627)
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return options
