"""Commands of `winnow models` that make bundles."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from models.assemble import ScoreWeights
from models.cli import options
from models.cli.accuracy import verify
from models.cli.mining import mine
from models.cli.training import train_encoder, train_reader
from models.measuring.calibrate import PASSAGES
from models.measuring.collection import read_collection
from models.mining.retrievers import CANDIDATES
from models.network.weights import open_minilm
from models.steps import calibration
from models.steps.bundle import (
    LADDER_ENCODERS,
    LADDER_READERS,
    MAX_ANSWER_TOKENS,
    MINILM_LAYERS,
    BundleNaming,
    LadderBundle,
    copy_score,
    ladder_bundles,
    make_bundle,
    make_ladder_bundle,
)
from models.steps.graphs import export_encoder, export_reader
from models.steps.late_calibration import calibrate_late_interaction
from models.steps.mining import is_mined
from models.steps.split_reader import export_split_reader
from models.steps.students import export_small_encoder, export_small_reader
from models.workspace import Workspace
from winnow.bundle import load_bundle, read_manifest
from winnow.bundle.manifest import LateInteractionEntry
from winnow.files.result_files import reserve_files

Fit = Callable[[calibration.Calibration, int], ScoreWeights]
_DocumentsOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="Directory with index and questions.jsonl to fit on, too; repeat for further kinds of "
        "text, each with its own name. Every kind counts equally.",
        show_default="Wikipedia only",
    ),
]
_ShareOption = Annotated[
    float,
    typer.Option(min=0.01, max=1, help="Share of the held-out questions of Wikipedia to use."),
]


def assemble(
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the bundle.",
            show_default="bundles/default with --apart, else bundles/whole",
        ),
    ] = None,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the bundle.",
            show_default=f"{options.NAME} with --apart, else {options.NAME}-whole",
        ),
    ] = None,
    version: options.VersionOption = options.VERSION,
    max_answer_tokens: options.MaxAnswerTokensOption = MAX_ANSWER_TOKENS,
    layers: options.LayersOption = None,
    split_layers: options.SplitLayersOption = 0,
    encoder_of: Annotated[
        Path | None,
        typer.Option(
            help="Bundle to copy the encoder from, so that existing indexes remain valid.",
            show_default="the trained encoder",
        ),
    ] = None,
) -> None:
    """Export the trained networks in int8 and make a bundle of them."""
    kind = options.reader_kind(layers, split_layers)
    workspace = Workspace(work)
    with open_minilm(base_weights) as directory:
        if split_layers:
            export_split_reader(directory, workspace, split_layers)
        elif layers is not None:
            export_small_reader(directory, workspace, layers)
        else:
            export_reader(directory, workspace)
        if encoder_of is None:
            export_encoder(directory, workspace)
        else:
            shutil.copyfile(
                load_bundle(encoder_of).passage_encoder, workspace.graph("encoder", "int8")
            )
        naming = BundleNaming(
            name or (options.NAME if split_layers else f"{options.NAME}-whole"),
            version,
            max_answer_tokens,
        )
        target = bundle or (options.BUNDLE if split_layers else options.TEACHER)
        make_bundle(directory, workspace, target, naming, kind, encoder_of)
    typer.echo(f"{target}: {sum(f.stat().st_size for f in target.iterdir()) / 1e6:.1f} MB")


def calibrate(
    bundle: options.BundleOption = options.BUNDLE,
    work: options.WorkOption = options.WORK,
    seed: options.SeedOption = options.SEED,
    use_ranking_passages: Annotated[
        bool,
        typer.Option(
            "--found",
            help="Fit on the passages of mine-ranking. Keeps the weight of matching words.",
        ),
    ] = False,
    documents: _DocumentsOption = None,
    share: _ShareOption = 1.0,
    candidates: Annotated[
        int,
        typer.Option(
            min=PASSAGES,
            max=CANDIDATES,
            help="Nearest candidates, and best by words, that late interaction ranks.",
        ),
    ] = CANDIDATES,
    keep_confidences: Annotated[
        bool,
        typer.Option(
            "--keep-confidences",
            help="Keep both confidences of the ranking by late interaction, and the minimum: for "
            "new questions whose answers are less exact.",
        ),
    ] = False,
) -> None:
    """Fit the final score on held-out questions and write it into the bundle.

    Also fits the weights of retrieval, the confidence of spans and sentences, the rules of early
    stopping, and the relevance of texts that callers send. If the bundle has late interaction, all
    but the last are fitted for the ranking by late interaction. Those for indexes without token
    vectors, and the relevance of texts, do not change.
    """
    fit: Fit = calibration.calibrate_on_retrieved if use_ranking_passages else calibration.calibrate
    late_interaction = read_manifest(bundle).late_interaction
    if late_interaction is not None:
        if use_ranking_passages:
            raise typer.BadParameter(
                f"--found does not support late interaction, which {bundle} has: leave it out"
            )
        fit = partial(
            calibrate_late_interaction, candidates=candidates, keep_confidences=keep_confidences
        )
    if keep_confidences and not _has_confidences(late_interaction):
        raise typer.BadParameter(
            f"{bundle} lacks confidences for late interaction: leave out --keep-confidences"
        )
    chosen = calibration.Calibration(
        Workspace(work), bundle, typer.echo, collections=_collections(documents), share=share
    )
    with reserve_files(*chosen.result_files()):
        score = fit(chosen, seed)
    typer.echo(
        f"score = {score.relevance:.4f} relevance + {score.span:.4f} span "
        f"+ {score.distance:.4f} distance + {score.words:.4f} words "
        f"+ {score.hybrid:.4f} hybrid distance; "
        f"no answer below {score.no_answer_below:.3f}"
    )


def _has_confidences(entry: LateInteractionEntry | None) -> bool:
    """Returns whether the bundle has all that `--keep-confidences` keeps."""
    score = None if entry is None else entry.score
    return score is not None and None not in (
        score.min_confidence,
        score.confidence,
        score.sentence_confidence,
    )


def _collections(given: Sequence[Path] | None) -> list[Path]:
    """Returns the collections, whose questions can be read.

    Raises BadParameter if two kinds of text have the same name, or a kind has no answers.
    """
    collections = [each.resolve() for each in given or ()]
    names = [calibration.WIKIPEDIA.lower(), *(each.name.lower() for each in collections)]
    if len(set(names)) < len(names):
        raise typer.BadParameter(
            "two kinds of text have the same name: rename a directory of --documents"
        )
    for each in collections:  # now, and not after Wikipedia was encoded
        if not any(question.answers for question in read_collection(each)):
            raise typer.BadParameter(f"no question of {each} has answers: nothing can be fitted")
    return collections


def calibrate_texts(
    bundle: options.BundleOption = options.BUNDLE,
    work: options.WorkOption = options.WORK,
    seed: options.SeedOption = options.SEED,
    documents: _DocumentsOption = None,
    share: _ShareOption = 1.0,
) -> None:
    """Fit the relevance of texts that callers send, and write it into the bundle.

    Nothing else in the bundle changes. `winnow models calibrate` fits this, too, unless the bundle
    has late interaction.
    """
    chosen = calibration.Calibration(
        Workspace(work), bundle, typer.echo, collections=_collections(documents), share=share
    )
    with reserve_files(*chosen.result_files()):
        fitted = calibration.calibrate_texts(chosen, seed)
    typer.echo(f"odds = {fitted.logit:.4f} relevance + {fitted.words:.4f} words {fitted.bias:+.4f}")


def build(
    data: options.DataOption = options.DATA,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    extra_passages: options.ExtraPassagesOption = options.EXTRA_PASSAGES,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    max_loss: options.MaxLossOption = options.MAX_LOSS,
) -> None:
    """Make a bundle with a full cross-encoder from data and pretrained weights.

    Runs mine, train-encoder, mine, train-reader, assemble, calibrate and verify, in this order.
    After an interruption, the same command continues. Takes about three hours on two cores with
    bfloat16.
    """
    with open_minilm(base_weights) as directory:
        _mine_if_needed(data, directory, work, extra_passages)
        train_encoder(directory, work, scale=scale, seed=seed)
        _mine_if_needed(data, directory, work, extra_passages)
        train_reader(directory, work, scale=scale, seed=seed)
        assemble(bundle, directory, work)
        calibrate(bundle, work, seed)
        verify(bundle, data, directory, work, max_loss, record_gold=True)


def _mine_if_needed(data: Path, base_weights: Path, work: Path, extra_passages: int) -> None:
    workspace = Workspace(work).create()
    export_encoder(base_weights, workspace)
    if not is_mined(workspace):
        mine(data, base_weights, work, extra_passages)


def ladder(
    out: Annotated[Path, typer.Option(help="Directory of the bundles, one subdirectory each.")],
    bundle: options.BundleOption = options.TEACHER,
    data: options.DataOption = options.DATA,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    reader: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=MINILM_LAYERS,
            help="Layers of a smaller reader. May be repeated.",
            show_default="4, 3, 2, 1",
        ),
    ] = None,
    encoder: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=MINILM_LAYERS,
            help="Layers of a smaller question encoder. May be repeated.",
            show_default="3, 2",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Factor for the length of the readers' training: 0.5 is half as long.",
        ),
    ] = 0.4,
    seed: options.SeedOption = options.SEED,
) -> None:
    """Train smaller readers and question encoders, and make a bundle of every combination.

    Needs the bundle and the directory --work of an earlier build. After an interruption, the same
    command continues.
    """
    workspace = Workspace(work)
    reader_layers, encoder_layers = reader or LADDER_READERS, encoder or LADDER_ENCODERS
    with open_minilm(base_weights) as directory:
        for layers in encoder_layers:
            train_encoder(directory, work, data, layers, seed=seed)
            export_small_encoder(directory, workspace, layers)
        for layers in reader_layers:
            train_reader(directory, work, bundle, layers, scale=scale, seed=seed)
            export_small_reader(directory, workspace, layers)
        _make_ladder_bundles(directory, workspace, out, None, bundle, encoder_layers)
        for layers in reader_layers:
            calibrated = out / LadderBundle(layers).name
            make_ladder_bundle(directory, workspace, calibrated, LadderBundle(layers))
            calibrate(calibrated, work, seed)
            _make_ladder_bundles(directory, workspace, out, layers, calibrated, encoder_layers)


def _make_ladder_bundles(
    weights: Path,
    workspace: Workspace,
    bundles: Path,
    reader_layers: int | None,
    calibrated: Path,
    encoder_layers: Sequence[int],
) -> None:
    """Makes the bundles that pair this reader with smaller encoders.

    Each bundle gets the final score of the bundle `calibrated`.
    """
    for ladder_bundle in ladder_bundles(reader_layers, encoder_layers):
        make_ladder_bundle(weights, workspace, bundles / ladder_bundle.name, ladder_bundle)
        copy_score(calibrated, bundles / ladder_bundle.name)
        typer.echo(bundles / ladder_bundle.name)
