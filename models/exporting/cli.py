"""`winnow models export` and `random`: other people's checkpoints, or none, to a bundle."""

from pathlib import Path
from typing import Annotated

import typer

from models.exporting.bundle import Choices, Sources, export_bundle
from models.exporting.graph import Precision
from models.exporting.manifest import Naming
from models.exporting.random_bundle import random_bundle
from models.exporting.sentence import Pooling, Similarity
from models.exporting.shape import Shape
from winnow.bundle import default_bundle, load_bundle

_Source = typer.Option(help="Directory in the Hugging Face layout.")


def export(
    question_encoder: Annotated[Path, _Source],
    reader: Annotated[Path, _Source],
    bundle: Annotated[Path, typer.Option(help="Directory to write the bundle to.")],
    passage_encoder: Annotated[
        Path | None,
        typer.Option(
            help="Directory in the Hugging Face layout.", show_default="the question encoder's"
        ),
    ] = None,
    precision: Annotated[Precision, typer.Option(help="What weights are stored as.")] = (
        Precision.FP32
    ),
    pooling: Annotated[
        Pooling | None,
        typer.Option(help="States to a vector.", show_default="as the directory says, else mean"),
    ] = None,
    similarity: Annotated[
        Similarity | None,
        typer.Option(
            help="How vectors are compared.",
            show_default="as the directory says, else dot for DPR and cosine for others",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the bundle.", show_default="its directory's")
    ] = None,
    version: Annotated[str, typer.Option(help="Version of the bundle.")] = "1.0.0",
    licence: Annotated[str, typer.Option(help="Licence of the weights.")] = "not stated",
    max_answer_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 10,
    no_answer_below: Annotated[
        float,
        typer.Option(help="Score under which an answer is not shown as one.", show_default="none"),
    ] = -1e9,
) -> None:
    """Turn checkpoints in the Hugging Face layout into a bundle: DPR, BERT, MiniLM, DistilBERT.

    Every graph is compared with PyTorch before the bundle appears.
    """
    made = export_bundle(
        Sources(question_encoder, passage_encoder or question_encoder, reader),
        bundle,
        Choices(pooling, similarity, precision),
        Naming(name or bundle.name, version, licence, max_answer_tokens, no_answer_below),
        typer.echo,
    )
    size = sum(entry.bytes for entry in made.manifest.files.values())
    typer.echo(f"{bundle}: {size / 1e6:.1f} MB; accuracy not measured: `winnow evaluate` does")


def random(
    shape: Annotated[Shape, typer.Option(help="Size of the reader.")],
    bundle: Annotated[Path, typer.Option(help="Directory to write the bundle to.")],
    source: Annotated[
        Path | None,
        typer.Option(help="Bundle of the encoder and vocabulary.", show_default="the default"),
    ] = None,
    precision: Annotated[Precision, typer.Option(help="What weights are stored as.")] = (
        Precision.INT8
    ),
    seed: Annotated[int, typer.Option(help="Seed.")] = 1,
) -> None:
    """Make a bundle whose reader has random weights, to measure how long a shape takes.

    It serves any index that the source bundle serves. Its answers mean nothing.
    """
    loaded = load_bundle(source or default_bundle())
    made = random_bundle(shape, bundle, loaded, precision, seed, typer.echo)
    typer.echo(f"{bundle}: {made.manifest.name}, {made.manifest.version}")
