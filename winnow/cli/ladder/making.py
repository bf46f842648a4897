"""The files of the ladder's models. Missing models are made from `graph`, and kept.

int8 is ONNX Runtime's dynamic quantisation, with the weights of matrix products per channel, as in
every bundle of this project.
"""

import importlib.util
import logging
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from winnow.cli.ladder.steps import EncoderShape, LadderStep, Precision
from winnow.cli.result_files import write_errors
from winnow.errors import UnavailableError
from winnow.packaged import extra, generated_files

_FORMAT = 1
"""Part of the directory's name. Raise it when the graphs change: then models are made again."""


def directory() -> Path:
    """The directory of the models."""
    return generated_files() / "ladder" / str(_FORMAT)


def encoder_file(place: Path, shape: EncoderShape, precision: Precision) -> Path:
    """The file of an encoder."""
    return place / f"{shape.name}-{precision.value}.onnx"


def head_file(place: Path, shape: EncoderShape) -> Path:
    """The file of a head on the states of such an encoder."""
    return place / f"head-{shape.width}.onnx"


def make_missing(place: Path, steps: Iterable[LadderStep], say: Callable[[str], None]) -> None:
    """Makes the missing models of all steps.

    Raises UnavailableError if models are missing, and so is the package that makes them, and
    WinnowError if a file cannot be written.
    """
    with write_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    for step in steps:
        for file, make in _files(place, step):
            if not file.exists():
                _expect_onnx()
                say(f"making {file.name}")
                with write_errors(file), tempfile.TemporaryDirectory(dir=place) as aside:
                    made = Path(aside) / file.name
                    make(made)
                    made.replace(file)


def _files(place: Path, step: LadderStep) -> Iterable[tuple[Path, Callable[[Path], None]]]:
    shape = step.shape
    whole = encoder_file(place, shape, Precision.FLOAT)
    yield whole, lambda to: _save_encoder(shape, to)
    if step.precision is Precision.INT8:
        small = encoder_file(place, shape, Precision.INT8)
        yield small, lambda to: _quantise(whole, to)
    if step.heads:
        yield head_file(place, shape), lambda to: _save_head(shape, to)


def _expect_onnx() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise UnavailableError(f"the ladder makes its models with onnx: {extra('ladder')}")


def _save_encoder(shape: EncoderShape, to: Path) -> None:
    from winnow.cli.ladder import graph  # noqa: PLC0415 (needs an extra)

    graph.save(graph.encoder(shape), str(to))


def _save_head(shape: EncoderShape, to: Path) -> None:
    from winnow.cli.ladder import graph  # noqa: PLC0415

    with tempfile.TemporaryDirectory(dir=to.parent) as aside:
        whole = Path(aside) / "head.onnx"
        graph.save(graph.head(shape.width), str(whole))
        _quantise(whole, to)


def _quantise(whole: Path, to: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    logging.getLogger().setLevel(
        logging.ERROR
    )  # it recommends a preprocessing step that gains nothing here
    quantize_dynamic(
        str(whole),
        str(to),
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul"],
        extra_options={"MatMulConstBOnly": True},
    )
