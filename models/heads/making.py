"""Makes a head from labelled texts: trains, exports, quantises, calibrates and measures it.

The head's directory appears only when it is complete.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models.exporting.files import write_atomically
from models.heads.calibration import calibrate_head
from models.heads.measuring import HELD_OUT, main_figure, measure_head
from models.heads.network import export_head, quantise_head
from models.heads.record import HeadNaming, manifest_fields
from models.heads.settings import HeadJob
from models.heads.task import HeadTask, read_head_task
from models.heads.training import TrainedHead, train_new_head
from winnow.bundle import Bundle
from winnow.heads.artefact import load_head
from winnow.heads.head import Head, open_head
from winnow.heads.manifest import HeadManifest
from winnow.heads.writing import write_head
from winnow.inference.runtime import FLOAT, INT8
from winnow.quoting import many


@dataclass(frozen=True, slots=True)
class HeadMaker:
    """Settings shared by all heads that are made in one command."""

    bundle: Bundle
    """Bundle whose question encoder computes the states."""
    states_cache: Path
    """Directory that keeps states for the next training on the same texts."""
    max_loss: float
    """Points of accuracy that int8 may lose on held-out texts.

    A head that loses more stays in float32.
    """
    report: Callable[[str], None]
    """Prints a line of progress."""


def make_head(job: HeadJob, naming: HeadNaming, maker: HeadMaker, target: Path) -> HeadManifest:
    """Trains a head and writes it to `target`, which must be missing or an empty directory.

    Raises:
        DataError: a file is missing or invalid.
        CheckpointError: `target` exists.

    """
    with write_atomically(target) as directory:
        task = read_head_task(job, maker.bundle, maker.states_cache, maker.report)
        trained = train_new_head(task, job.plan)
        maker.report(
            f"best after {many(trained.epochs, 'epoch')}: {trained.score:.2f} % on held-out texts"
        )
        fields = manifest_fields(job, naming, maker.bundle, task)
        fields["provenance"] |= {"epochs": trained.epochs}
        return finish_head(directory, fields, trained, task, maker)


def finish_head(
    target: Path, fields: dict[str, Any], trained: TrainedHead, task: HeadTask, maker: HeadMaker
) -> HeadManifest:
    """Exports a trained head, calibrates and measures it, and writes it to `target`.

    `fields` are the manifest fields that precede calibration.
    """
    with TemporaryDirectory(dir=target.parent) as directory:
        exact, small = (Path(directory) / f"{name}.onnx" for name in (FLOAT, INT8))
        export_head(trained.objective.network, task.width, exact)
        quantise_head(exact, small)
        models = {FLOAT: exact.read_bytes(), INT8: small.read_bytes()}
    figures = {
        precision: main_figure(
            task.kind, measure_head(_write_and_open(target, fields, model), task, task.held_out)
        )
        for precision, model in models.items()
    }
    loss = figures[FLOAT] - figures[INT8]
    precision = INT8 if loss <= maker.max_loss else FLOAT
    reason = "" if precision == INT8 else f", more than {maker.max_loss:g}: the head stays float32"
    maker.report(f"int8 loses {loss:.2f} points on held-out texts{reason}")
    fields["provenance"] |= {"precision": precision, "lost_by_int8": round(loss, 2)}
    fields |= calibrate_head(_write_and_open(target, fields, models[precision]), task)
    fields["accuracy"] = _accuracy(_write_and_open(target, fields, models[precision]), task)
    return write_head(target, fields, models[precision])


def _write_and_open(target: Path, fields: dict[str, Any], model: bytes) -> Head:
    """Writes a head and opens it as a server does."""
    write_head(target, fields, model)
    return open_head(load_head(target))


def _accuracy(head: Head, task: HeadTask) -> dict[str, float]:
    """Returns the figures of the test texts, and of the held-out texts under prefixed names."""
    held_out = measure_head(head, task, task.held_out)
    figures = {f"{HELD_OUT}{name}": value for name, value in held_out.items()}
    return figures if task.test is None else {**measure_head(head, task, task.test), **figures}
