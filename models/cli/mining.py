"""Commands of `winnow models` that make training questions."""

from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.data import DataDirectory
from models.network.weights import open_minilm
from models.steps import clozes, ranking
from models.steps import documents as document_steps
from models.steps.graphs import export_encoder
from models.steps.mining import mine_questions
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.quoting import many


def mine(
    data: options.DataOption = options.DATA,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    extra_passages: options.ExtraPassagesOption = options.EXTRA_PASSAGES,
) -> None:
    """Find hard negatives for every training question.

    A hard negative is a passage near the question that contains none of its answers. The command
    first exports the encoder, because hard negatives are this encoder's mistakes.
    """
    workspace = Workspace(work).create()
    with open_minilm(base_weights) as directory:
        export_encoder(directory, workspace)
        count = mine_questions(DataDirectory(data), directory, workspace, extra_passages)
    typer.echo(f"{workspace.mined_questions}: {many(count, 'question')}")


def mine_clozes(
    data: options.DataOption = options.DATA,
    bundle: options.BundleOption = options.TEACHER,
    work: options.WorkOption = options.WORK,
    passages: Annotated[
        int, typer.Option(min=1, help="Number of Wikipedia passages, with one question from each.")
    ] = 80_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice of passages.")] = 0,
) -> None:
    """Make cloze questions from Wikipedia sentences.

    The answer is a phrase of a sentence. A question is kept if the bundle's reader finds the phrase
    in another passage or in the sentence's own passage. Takes about twenty minutes on two cores.
    """
    workspace = Workspace(work)
    count = clozes.mine_clozes(DataDirectory(data), load_bundle(bundle), workspace, passages, seed)
    typer.echo(f"{workspace.cloze_questions}: {many(count, 'question')}")


def ask_documents(
    out: Annotated[Path, typer.Option(help="Directory to write questions and passages to.")],
    documents: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of documents to make questions of by rules. May be repeated."),
    ] = None,
    people: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSON lines of people's questions: question, answers (none if the passage does "
            "not answer), passage, sentence, document. May be repeated."
        ),
    ] = None,
) -> None:
    """Make training questions about documents.

    They are for `winnow models pack --documents`. Rules ask about options, definitions and
    defaults, and for the phrases of sentences. Files named `.man` are manual pages as `man` shows
    them. A tenth of the documents is held out. Needs the extra `documents`.
    """
    counts = document_steps.make_document_questions(documents or [], people or [], out)
    for source, count in sorted(counts.questions.items()):
        typer.echo(f"{source}: {many(count, 'question')}")
    typer.echo(f"{out}: {many(counts.passages, 'passage')}")
    if counts.unplaced:
        typer.echo(f"left out, answer not in the passage: {many(counts.unplaced, 'question')}")


def mine_ranking(
    index: Annotated[
        Path,
        typer.Option(
            help="Index of Wikipedia and the training paragraphs (python -m bench corpus)."
        ),
    ],
    data: options.DataOption = options.DATA,
    bundle: options.BundleOption = options.TEACHER,
    work: options.WorkOption = options.WORK,
) -> None:
    """Retrieve passages for every training question with the bundle's retriever.

    Takes about twenty minutes on two cores. After an interruption, the same command continues.
    """
    workspace = Workspace(work)
    count = ranking.mine_ranking(DataDirectory(data), index, load_bundle(bundle), workspace)
    typer.echo(f"{workspace.questions_with_negatives}: {many(count, 'question')}")
