"""Commands of `winnow models` that make training questions."""

from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.data import DataDirectory
from models.network.weights import minilm
from models.steps import clozes, ranking
from models.steps.graphs import export_encoder
from models.steps.mining import mine_questions
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.quoting import many


def mine(
    data: options.DataOption = options.DATA,
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    extra: options.ExtraOption = options.EXTRA,
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


def mine_clozes(
    data: options.DataOption = options.DATA,
    bundle: options.BundleOption = options.TEACHER,
    work: options.WorkOption = options.WORK,
    passages: Annotated[
        int, typer.Option(min=1, help="Wikipedia passages to make a question of, one each.")
    ] = 80_000,
    seed: Annotated[
        int, typer.Option(min=0, help="Which passages; another number draws others.")
    ] = 0,
) -> None:
    """Make training questions of Wikipedia's sentences.

    A phrase of a sentence is asked for. Kept are the questions that the bundle's reader answers
    with this phrase: in another passage that has it, or else in the sentence's own. Takes about
    twenty minutes on two cores.
    """
    place = Workspace(work)
    count = clozes.mine_clozes(DataDirectory(data), load_bundle(bundle), place, passages, seed)
    typer.echo(f"{place.clozes}: {many(count, 'question')}")


def mine_ranking(
    index: Annotated[
        Path,
        typer.Option(
            help="Index of Wikipedia and of the training paragraphs (python -m bench corpus)."
        ),
    ],
    data: options.DataOption = options.DATA,
    bundle: options.BundleOption = options.TEACHER,
    work: options.WorkOption = options.WORK,
) -> None:
    """Find the passages that the bundle's retriever has for every training question.

    Takes about twenty minutes on two cores. After an interruption, the same command continues.
    """
    place = Workspace(work)
    count = ranking.mine_ranking(DataDirectory(data), index, load_bundle(bundle), place)
    typer.echo(f"{place.ranked}: {many(count, 'question')}")
