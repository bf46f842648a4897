"""`winnow models export` and `random`: bundles of third-party checkpoints or random weights."""

from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.exporting.bundle import CheckpointDirectories, ExportOptions, export_bundle
from models.exporting.graph import Precision
from models.exporting.manifest import ExportNaming
from models.exporting.random_bundle import ReaderSize, random_bundle
from models.exporting.sentence import Pooling, Similarity
from models.steps.bundle import MAX_ANSWER_TOKENS
from winnow.bundle import load_bundle
from winnow.packaged import default_bundle

_Name = Annotated[
    str | None, typer.Option(help="Name of the bundle.", show_default="name of its directory")
]
_Target = Annotated[Path, typer.Option(help="Directory to write the bundle to.")]
_Precision = Annotated[Precision, typer.Option(help="Precision of the stored weights.")]


def export(
    question_encoder: Annotated[
        Path, typer.Option(help="Checkpoint of the question encoder, in the Hugging Face layout.")
    ],
    reader: Annotated[
        Path, typer.Option(help="Checkpoint of the reader, in the Hugging Face layout.")
    ],
    bundle: _Target,
    passage_encoder: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint of the passage encoder, in the Hugging Face layout.",
            show_default="the question encoder",
        ),
    ] = None,
    precision: _Precision = Precision.FP32,
    pooling: Annotated[
        Pooling | None,
        typer.Option(
            help="Pooling of token states into one vector.",
            show_default="setting of the checkpoint, else mean",
        ),
    ] = None,
    similarity: Annotated[
        Similarity | None,
        typer.Option(
            help="Similarity of two vectors.",
            show_default="setting of the checkpoint, else dot for DPR and cosine for others",
        ),
    ] = None,
    name: _Name = None,
    version: options.VersionOption = options.VERSION,
    licence: Annotated[str, typer.Option(help="Licence of the weights.")] = "not stated",
    max_answer_tokens: options.MaxAnswerTokensOption = MAX_ANSWER_TOKENS,
    no_answer_below: Annotated[
        float,
        typer.Option(help="Lowest score at which a span counts as an answer.", show_default="none"),
    ] = -1e9,
) -> None:
    """Make a bundle from checkpoints in the Hugging Face layout.

    Supports DPR, BERT, MiniLM and DistilBERT. Writes the bundle only if every graph computes the
    same as PyTorch.
    """
    exported = export_bundle(
        CheckpointDirectories(question_encoder, passage_encoder or question_encoder, reader),
        bundle,
        ExportOptions(pooling, similarity, precision),
        ExportNaming(
            name=name or bundle.name,
            version=version,
            licence=licence,
            max_answer_tokens=max_answer_tokens,
            no_answer_below=no_answer_below,
        ),
        typer.echo,
    )
    size = sum(entry.bytes for entry in exported.manifest.files.values())
    typer.echo(f"{bundle}: {size / 1e6:.1f} MB; measure its accuracy with `winnow evaluate`")


def export_random(
    shape: Annotated[ReaderSize, typer.Option(help="Size of the reader.")],
    bundle: _Target,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Bundle to copy encoder and vocabulary from.", show_default="the default bundle"
        ),
    ] = None,
    precision: _Precision = Precision.INT8,
    seed: options.SeedOption = options.SEED,
) -> None:
    """Make a bundle whose reader has random weights, to measure latency.

    The bundle can serve every index of the source bundle. Its answers are meaningless.
    """
    loaded = load_bundle(source or default_bundle())
    random_weights_bundle = random_bundle(shape, bundle, loaded, precision, seed, typer.echo)
    typer.echo(
        f"{bundle}: {random_weights_bundle.manifest.name}, {random_weights_bundle.manifest.version}"
    )
