"""Opens a model in the most suitable runtime.

The processor's flags and the model's precision determine the usable runtimes and their order. If
there are several, `winnow.inference.runtime_chooser` can time them.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.inference import openvino
from winnow.inference.onnx import OnnxSession
from winnow.inference.openvino import OpenVinoSession
from winnow.inference.options import PLAIN, InferenceOptions, Runtime
from winnow.inference.processor import cpu_features
from winnow.inference.runtime_chooser import ChosenBy
from winnow.inference.session import Inputs, PaddedSession, Session

INT8, FLOAT = "int8", "fp32"
_BFLOAT16 = {"amx_bf16", "avx512_bf16"}


def usable_runtimes(
    requested: Runtime, precision: str, features: frozenset[str], openvino_installed: bool
) -> tuple[Runtime, ...]:
    """Returns the runtimes that can run a model, the most suitable one for the processor first.

    `precision`: precision of the stored model. `features`: the processor's flags.

    Raises:
        ArtefactError: OpenVINO or CUDA is requested for an int8 model. OpenVINO is several times
            slower with such models, and CUDA has no kernels for them.

    """
    if requested is Runtime.CUDA and precision == INT8:
        raise ArtefactError(
            "a GPU runs float models only, but this model is int8: serve a float bundle, or choose "
            "the runtime onnxruntime"
        )
    if requested is Runtime.OPENVINO and precision == INT8:
        raise ArtefactError(
            "OpenVINO is slow for models quantised for ONNX Runtime, such as this one: serve a "
            "float bundle, or choose the runtime onnxruntime"
        )
    if requested is not Runtime.AUTO:
        return (requested,)
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
    extension: bytes = b"",
    sample_inputs: Inputs | None = None,
) -> Session:
    """Opens a model stored in `precision`, as specified by `options`.

    `extension` is appended to the model (`winnow.inference.inner_output`). `sample_inputs` are
    made-up inputs of typical length, with which `options.chooser` times the runtimes.

    Raises:
        ArtefactError: the model cannot be opened with these options.

    """
    runtimes = usable_runtimes(options.runtime, precision, cpu_features(), openvino.installed())
    open_in = partial(_open, path, outputs, options, extension)
    first, chooser = runtimes[0], options.chooser
    if chooser is None:
        return open_in(first)
    if sample_inputs is not None and len(runtimes) > 1:
        openers = {each.value: partial(open_in, each) for each in runtimes}
        return chooser.open(path.name, openers, sample_inputs)
    session = open_in(first)
    chooser.report(path.name, first.value, _chosen_by(options.runtime, runtimes))
    return session


def _open(
    path: Path,
    outputs: Sequence[str],
    options: InferenceOptions,
    extension: bytes,
    runtime: Runtime,
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
            extension=extension,
        )
    else:
        cuda = runtime is Runtime.CUDA
        session = OnnxSession(
            path,
            outputs,
            intra_op_threads=options.intra_op_threads,
            extension=extension,
            cuda=cuda,
        )
    return PaddedSession(session, options.pad_to) if options.pad_to else session


def _chosen_by(requested: Runtime, runtimes: Sequence[Runtime]) -> ChosenBy:
    if requested is not Runtime.AUTO:
        return ChosenBy.SETTING
    return ChosenBy.FLAGS if len(runtimes) > 1 else ChosenBy.ONLY


def runs_bfloat16() -> bool:
    """Whether OpenVINO is installed and would run float models in bfloat16 on this machine."""
    return openvino.installed() and bool(cpu_features() & _BFLOAT16)
