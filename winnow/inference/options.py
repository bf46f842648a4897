"""Options with which models run. Imports no runtime, so that settings load quickly."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winnow.inference.choosing import RuntimeChooser


class Runtime(str, Enum):
    """A library that runs models, and the kind of processor."""

    AUTO = "auto"
    """OpenVINO for float models on processors that multiply bfloat16 matrices (AMX), else ONNX
    Runtime; or another runtime that measures clearly faster.
    """
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    """OpenVINO on the CPU; in bfloat16 if the processor supports it natively."""
    CUDA = "cuda"
    """ONNX Runtime on a GPU. The project's own tests have no GPU and do not run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOptions:
    """How models are run. The defaults measured best."""

    runtime: Runtime = Runtime.AUTO
    intra_op_threads: int = 1
    """Threads of one run. There may be several runs at the same time."""
    pad_to: int = 0
    """Number of tokens that every input is padded to; 0 for no padding."""
    runs: int = 1
    """Maximum number of runs at the same time. OpenVINO needs it; further runs wait."""
    chooser: "RuntimeChooser | None" = None
    """Times the runtimes of a model.

    With None the processor's flags decide, so that equal processors compute the same vectors, as
    stored vectors require.
    """


PLAIN = InferenceOptions()
