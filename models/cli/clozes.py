"""`winnow models mine-clozes`: training questions that nobody asked."""

from typing import Annotated

import typer

from models.cli.options import DATA, TEACHER, WORK, BundleOption, DataOption, WorkOption
from models.data.directory import DataDirectory
from models.steps import clozes
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.quoting import many


def mine_clozes(
    data: DataOption = DATA,
    bundle: BundleOption = TEACHER,
    work: WorkOption = WORK,
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
