"""Opens a model in a runtime that can run it.

Which runtimes can, and which comes first, is a pure function of the processor's flags and of the
model's precision. If several can, `winnow.inference.choosing` tries them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.inference import openvino
from winnow.inference.choosing import Choosing, ChosenBy
from winnow.inference.onnx import OnnxSession
from winnow.inference.openvino import OpenVinoSession
from winnow.inference.session import Inputs, PaddedSession, Session

INT8, FLOAT = "int8", "fp32"
_BFLOAT16 = {"amx_bf16", "avx512_bf16"}


class Runtime(str, Enum):
    """A library that runs models, and on what."""

    AUTO = "auto"
    """OpenVINO for float models where the processor multiplies bfloat16 matrices (AMX), unless
    another measures clearly faster."""
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    """In bfloat16 where the processor has it natively."""
    CUDA = "cuda"
    """ONNX Runtime on a GPU. Not run by the project's own tests, which have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceOptions:
    """How models are run. The defaults are what measured best."""

    runtime: Runtime = Runtime.AUTO
    intra_op_threads: int = 1
    """Threads of one run; several runs may go on at once."""
    pad_to: int = 0
    """Number of tokens that every input is padded to; 0 for no padding."""
    runs: int = 1
    """Most runs at the same time. OpenVINO has to know, or they wait for one another."""
    choosing: Choosing | None = None
    """Tries the runtimes of a model. With None the processor's flags decide, so that equal
    processors compute the same vectors; stored vectors need that."""


PLAIN = InferenceOptions()


def able(
    asked: Runtime, precision: str, features: frozenset[str], openvino_installed: bool
) -> tuple[Runtime, ...]:
    """The runtimes that can run a model.

    `precision` is that of the stored model, `features` are the processor's flags. The runtime that
    suits the processor best comes first.

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
        return (asked,)
    if precision == INT8 or not openvino_installed:
        return (Runtime.ONNXRUNTIME,)
    if "amx_bf16" in features:
        return Runtime.OPENVINO, Runtime.ONNXRUNTIME
    return Runtime.ONNXRUNTIME, Runtime.OPENVINO


def open_session(
    path: Path,
    outputs: Sequence[str],
    precision: str,
    options: InferenceOptions = PLAIN,
    inner: str = "",
    usual: Inputs | None = None,
) -> Session:
    """Opens a model stored in `precision` as `options` say.

    `inner` names a value inside the model that becomes an output, too; empty for none. `usual` is
    a made-up input of the usual length: with it, `options.choosing` tries the runtimes.

    Raises:
        ArtefactError: the model cannot be opened, or not by these options.

    """
    runtimes = able(options.runtime, precision, cpu_features(), openvino.installed())
    opening = partial(_open, path, outputs, options, inner)
    first, choosing = runtimes[0], options.choosing
    if choosing is None:
        return opening(first)
    if usual is not None and len(runtimes) > 1:
        ways = {each.value: partial(opening, each) for each in runtimes}
        return choosing.open(path.name, ways, usual)
    session = opening(first)
    choosing.set(path.name, first.value, _by(options.runtime, runtimes))
    return session


def _open(
    path: Path, outputs: Sequence[str], options: InferenceOptions, inner: str, runtime: Runtime
) -> Session:
    session: Session
    if runtime is Runtime.OPENVINO:
        bfloat16 = bool(cpu_features() & _BFLOAT16)
        session = OpenVinoSession(
            path,
            outputs,
            bfloat16=bfloat16,
            intra_op_threads=options.intra_op_threads,
            runs=options.runs,
            inner=inner,
        )
    else:
        cuda = runtime is Runtime.CUDA
        session = OnnxSession(
            path, outputs, intra_op_threads=options.intra_op_threads, inner=inner, cuda=cuda
        )
    return PaddedSession(session, options.pad_to) if options.pad_to else session


def _by(asked: Runtime, runtimes: Sequence[Runtime]) -> ChosenBy:
    if asked is not Runtime.AUTO:
        return ChosenBy.SETTING
    return ChosenBy.FLAGS if len(runtimes) > 1 else ChosenBy.ONLY


def runs_bfloat16() -> bool:
    """Whether float models run in bfloat16 here, by OpenVINO."""
    return openvino.installed() and bool(cpu_features() & _BFLOAT16)


def cpu_features(source: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's flags; empty if there is no such file."""
    try:
        text = source.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
