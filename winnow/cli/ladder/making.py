"""Creates the missing model files of the ladder.

int8 means ONNX Runtime's dynamic quantisation of matrix products, with weights per channel, as in
every bundle of this project.
"""

import importlib.util
import logging
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from winnow.cli.ladder.steps import EncoderShape, LadderStep, Precision
from winnow.errors import UnavailableError
from winnow.files.result_files import convert_write_errors
from winnow.packaged import extra, generated_directory

_FORMAT = 1
"""Part of the directory's name. Increase it when the graphs change, to create the models again."""


def models_directory() -> Path:
    """The directory of the models."""
    return generated_directory() / "ladder" / str(_FORMAT)


def encoder_file(directory: Path, shape: EncoderShape, precision: Precision) -> Path:
    """The file of an encoder."""
    return directory / f"{shape.name}-{precision.value}.onnx"


def head_file(directory: Path, shape: EncoderShape) -> Path:
    """The file of a head for the states of an encoder."""
    return directory / f"head-{shape.width}.onnx"


def create_missing_models(
    directory: Path, steps: Iterable[LadderStep], say: Callable[[str], None]
) -> None:
    """Creates the missing models of all steps.

    Raises UnavailableError if a model is missing and onnx is not installed. Raises WinnowError if a
    file cannot be written.
    """
    with convert_write_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for step in steps:
        for file, create in _files_of_step(directory, step):
            if not file.exists():
                _expect_onnx()
                say(f"making {file.name}")
                with (
                    convert_write_errors(file),
                    tempfile.TemporaryDirectory(dir=directory) as temporary,
                ):
                    model = Path(temporary) / file.name
                    create(model)
                    model.replace(file)


def _files_of_step(
    directory: Path, step: LadderStep
) -> Iterable[tuple[Path, Callable[[Path], None]]]:
    shape = step.shape
    full = encoder_file(directory, shape, Precision.FLOAT)
    yield full, lambda to: _save_encoder(shape, to)
    if step.precision is Precision.INT8:
        quantised = encoder_file(directory, shape, Precision.INT8)
        yield quantised, lambda to: _quantise_model(full, to)
    if step.heads:
        yield head_file(directory, shape), lambda to: _save_head(shape, to)


def _expect_onnx() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise UnavailableError(f"creating the ladder's models needs onnx: {extra('ladder')}")


def _save_encoder(shape: EncoderShape, to: Path) -> None:
    import onnx  # noqa: PLC0415 (an extra)

    from winnow.cli.ladder import onnx_graph  # noqa: PLC0415

    onnx.save(onnx_graph.build_encoder(shape), str(to))


def _save_head(shape: EncoderShape, to: Path) -> None:
    import onnx  # noqa: PLC0415

    from winnow.cli.ladder import onnx_graph  # noqa: PLC0415

    with tempfile.TemporaryDirectory(dir=to.parent) as temporary:
        full = Path(temporary) / "head.onnx"
        onnx.save(onnx_graph.build_head(shape.width), str(full))
        _quantise_model(full, to)


def _quantise_model(full: Path, to: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    # silences a warning that recommends preprocessing, which has no benefit here
    logging.getLogger().setLevel(logging.ERROR)
    quantize_dynamic(
        str(full),
        str(to),
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul"],
        extra_options={"MatMulConstBOnly": True},
    )
