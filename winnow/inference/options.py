"""Options for running models. Imports no runtime, so that settings load quickly."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winnow.inference.runtime_chooser import RuntimeChooser


class Runtime(str, Enum):
    """A library that runs models, with the kind of processor."""

    AUTO = "auto"
    """The runtime that measures clearly fastest.

    Without measurements: OpenVINO for float models on processors that multiply bfloat16 matrices
    (AMX), otherwise ONNX Runtime.
    """
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    """OpenVINO on the CPU; in bfloat16 if the processor supports it natively."""
    CUDA = "cuda"
    """ONNX Runtime on a GPU. The project's tests do not cover it, because they have no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOptions:
    """How models run. The defaults measured best."""

    runtime: Runtime = Runtime.AUTO
    intra_op_threads: int = 1
    """Number of threads of one run. Several runs may be concurrent."""
    pad_to: int = 0
    """Number of tokens to which every input is padded; 0 for no padding."""
    runs: int = 1
    """Maximum number of concurrent runs; further runs wait. Used only by OpenVINO."""
    chooser: "RuntimeChooser | None" = None
    """Chooses the runtime of each model by timing. With None, the processor's flags decide.

    Stored vectors need None, so that equal processors compute the same vectors.
    """


PLAIN = InferenceOptions()
