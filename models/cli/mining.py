"""`winnow models mine`: training questions with hard negatives."""

import typer

from models.cli.options import (
    DATA,
    EXTRA,
    WEIGHTS,
    WORK,
    DataOption,
    ExtraOption,
    WeightsOption,
    WorkOption,
)
from models.data.directory import DataDirectory
from models.network.weights import minilm
from models.steps.graphs import export_encoder
from models.steps.mining import mine_questions
from models.workspace import Workspace
from winnow.quoting import many


def mine(
    data: DataOption = DATA,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    extra: ExtraOption = EXTRA,
) -> None:
    """Find hard negatives for every training question.

    A hard negative is a passage near the question that lacks every answer. The encoder is exported
    first, since its own mistakes are wanted.
    """
    place = Workspace(work).made()
    with minilm(weights) as directory:
        export_encoder(directory, place)
        count = mine_questions(DataDirectory(data), directory, place, extra)
    typer.echo(f"{place.mined}: {many(count, 'question')}")
