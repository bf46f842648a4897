"""Which runtime runs a model, and how.

The choice is a pure function of what the processor can do and of how the model is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.inference import openvino
from winnow.inference.onnx import OnnxSession
from winnow.inference.openvino import OpenVinoSession
from winnow.inference.padded import PaddedSession
from winnow.inference.session import Session

INT8, FLOAT = "int8", "fp32"
_BFLOAT16 = {"amx_bf16", "avx512_bf16"}


class Runtime(str, Enum):
    """What runs models."""

    AUTO = "auto"
    """OpenVINO for float models where the processor multiplies bfloat16 matrices (AMX)."""
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    """In bfloat16 where the processor has it natively."""
    CUDA = "cuda"
    """ONNX Runtime on a GPU. Not run by the project's own tests, which have none."""


@dataclass(frozen=True, slots=True)
class InferenceOptions:
    """How models are run. The defaults are what measured best."""

    runtime: Runtime = Runtime.AUTO
    intra_op_threads: int = 1
    """Threads of one run; requests have threads of their own."""
    pad_to: int = 0
    """Tokens that every input is filled up to; 0 for none."""
    runs: int = 1
    """Runs that go on at the same time. OpenVINO has to know, or they wait for one another."""


PLAIN = InferenceOptions()


def choose(
    asked: Runtime, precision: str, features: frozenset[str], openvino_installed: bool
) -> Runtime:
    """The runtime of a model stored in `precision` on a processor with such `features`.

    Raises:
        ArtefactError: OpenVINO is asked for a model quantised for ONNX Runtime, which it runs
            several times as slowly; or CUDA, which has no kernels for it.

    """
    if asked is Runtime.CUDA and precision == INT8:
        raise ArtefactError(
            "a GPU runs float models only, and this one is int8: serve a float bundle, or choose "
            "the runtime onnxruntime"
        )
    if asked is Runtime.OPENVINO and precision == INT8:
        raise ArtefactError(
            "OpenVINO is slow for models quantised for ONNX Runtime: serve a float bundle with it, "
            "or choose the runtime onnxruntime"
        )
    if asked is not Runtime.AUTO:
        return asked
    able = precision != INT8 and openvino_installed and "amx_bf16" in features
    return Runtime.OPENVINO if able else Runtime.ONNXRUNTIME


def open_session(
    path: Path,
    outputs: Sequence[str],
    precision: str,
    options: InferenceOptions = PLAIN,
    inner: str = "",
) -> Session:
    """Opens a model stored in `precision` as `options` say.

    `inner` names a value inside the model that becomes an output, too; empty for none.

    Raises:
        ArtefactError: it cannot be opened, or not so.

    """
    features = cpu_features()
    session: Session
    chosen = choose(options.runtime, precision, features, openvino.installed())
    if chosen is Runtime.OPENVINO:
        bfloat16 = bool(features & _BFLOAT16)
        session = OpenVinoSession(
            path, outputs, bfloat16, options.intra_op_threads, options.runs, inner
        )
    else:
        cuda = chosen is Runtime.CUDA
        session = OnnxSession(path, outputs, options.intra_op_threads, inner, cuda)
    return PaddedSession(session, options.pad_to) if options.pad_to else session


def runs_bfloat16() -> bool:
    """Whether float models run in bfloat16 here, by OpenVINO."""
    return openvino.installed() and bool(cpu_features() & _BFLOAT16)


def cpu_features(source: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What the processor says it can do; nothing where there is no such file."""
    try:
        text = source.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
