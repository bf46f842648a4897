"""A head from labelled texts: train, export, quantise if that costs little, calibrate, measure.

Knows the order; the directory appears once all of it is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models.exporting.files import written_whole
from models.heads.calibration import calibrate
from models.heads.measured import HELD_OUT, main_figure, measure
from models.heads.network import export_head, quantise_head
from models.heads.problem import Problem, read_problem
from models.heads.record import HeadNaming, manifest_fields
from models.heads.settings import HeadJob
from models.heads.training import Trained, train
from winnow.bundle import Bundle
from winnow.heads.artefact import load_head
from winnow.heads.head import Head, open_head
from winnow.heads.manifest import HeadManifest
from winnow.heads.writing import write_head
from winnow.inference.runtime import FLOAT, INT8
from winnow.quoting import many


@dataclass(frozen=True, slots=True)
class HeadMaker:
    """Settings that several heads are made with."""

    bundle: Bundle
    """Bundle whose question encoder computes the states."""
    kept: Path
    """Directory that keeps states, for the next training on the same texts."""
    max_loss: float
    """Points that int8 may lose on held-out texts; a head that loses more stays in float32."""
    say: Callable[[str], None]
    """Prints figures."""


def make_head(job: HeadJob, naming: HeadNaming, maker: HeadMaker, target: Path) -> HeadManifest:
    """Trains a head and writes it to `target`, which must not be there yet, or be empty.

    Raises:
        DataError: a file is not what it should be.
        CheckpointError: `target` is there.

    """
    with written_whole(target) as place:
        problem = read_problem(job, maker.bundle, maker.kept, maker.say)
        trained = train(problem, job.plan)
        maker.say(
            f"best after {many(trained.epochs, 'epoch')}: {trained.held_out:.2f} % on held-out "
            "texts"
        )
        fields = manifest_fields(job, naming, maker.bundle, problem)
        fields["provenance"] |= {"epochs": trained.epochs}
        return finish(place, fields, trained, problem, maker)


def finish(
    place: Path, fields: dict[str, Any], trained: Trained, problem: Problem, maker: HeadMaker
) -> HeadManifest:
    """Exports a trained head, calibrates and measures it, and writes it to `place`.

    `fields` are those of the manifest that are known by then.
    """
    with TemporaryDirectory(dir=place.parent) as directory:
        exact, small = (Path(directory) / f"{name}.onnx" for name in (FLOAT, INT8))
        export_head(trained.task.network, problem.width, exact)
        quantise_head(exact, small)
        models = {FLOAT: exact.read_bytes(), INT8: small.read_bytes()}
    found = {
        name: main_figure(problem.kind, measure(_head(place, fields, model), problem, problem.held))
        for name, model in models.items()
    }
    lost = found[FLOAT] - found[INT8]
    precision = INT8 if lost <= maker.max_loss else FLOAT
    kept = "" if precision == INT8 else f", more than {maker.max_loss:g}: it stays in float32"
    maker.say(f"int8 loses {lost:.2f} points on held-out texts{kept}")
    fields["provenance"] |= {"precision": precision, "lost_by_int8": round(lost, 2)}
    fields |= calibrate(_head(place, fields, models[precision]), problem)
    fields["accuracy"] = _accuracy(_head(place, fields, models[precision]), problem)
    return write_head(place, fields, models[precision])


def _head(place: Path, fields: dict[str, Any], model: bytes) -> Head:
    """Writes a head, and opens it as a server does."""
    write_head(place, fields, model)
    return open_head(load_head(place))


def _accuracy(head: Head, problem: Problem) -> dict[str, float]:
    held = measure(head, problem, problem.held)
    figures = {f"{HELD_OUT}{name}": value for name, value in held.items()}
    return figures if problem.test is None else {**measure(head, problem, problem.test), **figures}
