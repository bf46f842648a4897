"""One measurement of a grid of points, from question files to figures on disk."""

from collections.abc import Sequence
from pathlib import Path

from winnow import signals
from winnow.cli.drawing import check_drawable
from winnow.cli.outputs import directory, reserved
from winnow.cli.pareto import report
from winnow.cli.pareto.figures import PointFigures, figures
from winnow.cli.pareto.plot import plot
from winnow.cli.pareto.point import Point, megabytes, unjudged
from winnow.cli.pareto.run import Questions, run
from winnow.cli.questions import AskedQuestion, expect_answers, read_questions
from winnow.errors import WinnowError
from winnow.telemetry.progress import StageProgress


def measure(
    points: Sequence[Point], index: Path, files: Sequence[Path], limit: int, out: Path
) -> list[PointFigures]:
    """Asks every point the questions of every file, and writes the figures into `out`.

    Raises:
        WinnowError: there is nothing to compare, or something cannot be written or started.

    """
    points = list(dict.fromkeys(points))
    sets = [Questions(path.name.split(".")[0], _spread(path, limit)) for path in files]
    _expect_distinct("points", [point.name for point in points])
    _expect_distinct("files of questions", [each.name for each in sets])
    results, picture = out / "outcomes.jsonl", out / "pareto.png"
    check_drawable(picture)
    written = (results, picture, out / report.JSON, out / report.CSV)
    with directory(out), reserved(*written), StageProgress() as progress:
        outcomes = signals.run(run(points, sets, index, results, progress))
        sizes = {point.name: megabytes(point.deployment.bundle) for point in points}
        found = figures(outcomes, sizes, unjudged(points))
        report.write(found, out)
        plot(found, picture)
    return found


def _expect_distinct(what: str, names: Sequence[str]) -> None:
    """What is called the same would be taken for the same."""
    for name in names:
        if names.count(name) > 1:
            raise WinnowError(f"two {what} are called {name}: rename one, or leave one out")


def _spread(path: Path, limit: int) -> list[AskedQuestion]:
    asked = read_questions(path)
    expect_answers(asked, path)
    asked = [each for each in asked if each.answers]
    return asked[:: max(len(asked) // limit, 1)][:limit]
