"""`winnow models train-head` and `measure-heads`, and `winnow heads refit`."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from models.cli import options
from models.data import DataError
from models.heads.making import HeadMaker, make_head
from models.heads.record import HeadNaming
from models.heads.refit import RefitPlan
from models.heads.refit import refit as refit_heads
from models.heads.rows import Fields
from models.heads.settings import (
    BENCHMARKS,
    DEFAULT_PLAN,
    OUT_OF_SCOPE,
    Benchmark,
    HeadJob,
    HeadPlan,
    default_fields,
)
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.cli.output import AsJson, print_json
from winnow.heads.manifest import Kind, validate_head_id
from winnow.heads.store import open_store
from winnow.quoting import many, quoted

MAX_LOSS = 0.5
"""Default of --max-loss, in points of accuracy."""
_ENCODER_GROUP = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def _parse_head_id(value: str) -> str:
    try:
        return validate_head_id(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _parse_encoder_group(value: str | None) -> str | None:
    """Returns the name if it is valid for an encoder group of a front node."""
    if value is not None and not _ENCODER_GROUP.fullmatch(value):
        raise typer.BadParameter(
            f"invalid encoder group {quoted(value)}: use 1 to 64 characters of a-z, 0-9, dot, "
            "dash and underscore, as in --rings of `winnow front`"
        )
    return value


def _parse_licences(values: list[str]) -> dict[str, str]:
    licences = dict(value.partition("=")[::2] for value in values)
    if not all(name and licence for name, licence in licences.items()):
        raise typer.BadParameter("a licence must be WHAT=LICENCE, such as data='CC BY 4.0'")
    return licences


KindOption = Annotated[
    Kind, typer.Option(help="Kind of labels: of whole texts (sequence) or of words (token).")
]
MaxLossOption = Annotated[
    float,
    typer.Option(
        min=0,
        help="Maximum loss of accuracy by int8, in points. Above it the head stays in float32.",
    ),
]
StatesCacheOption = Annotated[
    Path | None,
    typer.Option(
        "--work",
        help="Directory that caches the states of texts for the next run.",
        show_default="no cache",
    ),
]
TextFieldOption = Annotated[
    str | None,
    typer.Option(help="Column of the texts.", show_default="text; tokens for token heads"),
]
LabelFieldOption = Annotated[
    str | None,
    typer.Option(help="Column of the labels.", show_default="label; labels for token heads"),
]


def train_head(
    data: Annotated[
        Path, typer.Option(help="Labelled texts: CSV or JSON lines, optionally .gz or .zst.")
    ],
    kind: KindOption,
    head_id: Annotated[str, typer.Option("--id", help="Id of the head.", callback=_parse_head_id)],
    out: Annotated[Path, typer.Option(help="Directory to write the head to.")],
    bundle: options.BundleOption = options.BUNDLE,
    test: Annotated[
        Path | None, typer.Option(help="Labelled texts to measure the head on.")
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="Labelled texts for early stopping and calibration.",
            show_default="a share of --data",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Owner of the head.")] = "",
    version: Annotated[int, typer.Option(min=1, help="Version of the head.")] = 1,
    text_field: TextFieldOption = None,
    label_field: LabelFieldOption = None,
    multi_label: Annotated[
        bool,
        typer.Option("--multi-label", help="Allow several labels per text: a list, or a|b in CSV."),
    ] = False,
    out_of_scope: Annotated[
        str, typer.Option(help="Label of texts that no other label fits.")
    ] = OUT_OF_SCOPE,
    licence: Annotated[
        list[str] | None,
        typer.Option(help="Licence to record, as WHAT=LICENCE. May be repeated."),
    ] = None,
    names_only: Annotated[
        bool,
        typer.Option("--names-only", help="Record file names without their directories."),
    ] = False,
    epochs: Annotated[
        int, typer.Option(min=1, help="Maximum number of passes over the texts.")
    ] = DEFAULT_PLAN.epochs,
    patience: Annotated[
        int, typer.Option(min=1, help="Passes without improvement before training ends.")
    ] = DEFAULT_PLAN.patience,
    batch: Annotated[
        int, typer.Option(min=1, help="Texts per training step.")
    ] = DEFAULT_PLAN.batch,
    rate: Annotated[float, typer.Option(min=1e-9, help="Peak learning rate.")] = DEFAULT_PLAN.rate,
    dropout: Annotated[
        float, typer.Option(min=0, max=0.95, help="Dropout rate in training.")
    ] = DEFAULT_PLAN.dropout,
    hidden: Annotated[
        int, typer.Option(min=1, max=4096, help="Width of the hidden layer.")
    ] = DEFAULT_PLAN.hidden,
    queries: Annotated[
        int, typer.Option(min=1, max=64, help="Attention queries of a sequence head.")
    ] = DEFAULT_PLAN.queries,
    held_out: Annotated[
        float,
        typer.Option(
            min=0.01, max=0.5, help="Share of --data to hold out if --validation is not set."
        ),
    ] = DEFAULT_PLAN.held_out,
    max_loss: MaxLossOption = MAX_LOSS,
    work: StatesCacheOption = None,
    seed: options.SeedOption = options.SEED,
    as_json: AsJson = False,
) -> None:
    """Train a head on labelled texts.

    The head's input is the token states of a bundle's encoder, which is not changed. --work caches
    these states for the next run. Takes minutes on two cores. The head is exported in int8,
    calibrated, measured and written to --out. Publish it with `winnow heads publish`.
    """
    plan = HeadPlan(
        epochs=epochs,
        patience=patience,
        batch=batch,
        rate=rate,
        dropout=dropout,
        hidden=hidden,
        queries=queries,
        held_out=held_out,
        seed=seed,
    )
    defaults = default_fields(kind)
    job = HeadJob(
        kind=kind,
        data=data,
        fields=Fields(text_field or defaults.text, label_field or defaults.label, multi_label),
        plan=plan,
        validation=validation,
        test=test,
        out_of_scope=out_of_scope,
    )
    naming = HeadNaming(
        id=head_id,
        tenant=tenant,
        version=version,
        licences=_parse_licences(licence or []),
        names_only=names_only,
    )
    with _states_cache(work) as states_cache:
        maker = HeadMaker(load_bundle(bundle), states_cache, max_loss, _report)
        head = make_head(job, naming, maker, out)
    title = f"{out}: {head.id}, {many(len(head.labels), 'label')}, {head.model.bytes / 1e6:.2f} MB"
    _print_figures(title, head.accuracy, as_json)


@contextmanager
def _states_cache(work: Path | None) -> Iterator[Path]:
    """Yields the cache directory of states: in `work`, or temporary if `work` is None."""
    if work is not None:
        yield Workspace(work).states
        return
    with TemporaryDirectory(prefix="winnow-states-") as directory:
        yield Path(directory)


def _report(text: str) -> None:
    typer.echo(text, err=True)


def _print_figures(title: str, figures: dict[str, float], as_json: bool) -> None:
    lines = [title, *(f"  {name}: {value:.2f} %" for name, value in figures.items())]
    if as_json:
        print_json(figures)
    else:
        typer.echo("\n".join(lines))


def refit(
    source: Annotated[str, typer.Option("--from", help="Store of the current heads.")],
    target: Annotated[str, typer.Option("--to", help="Store for the heads of the new encoder.")],
    bundle: Annotated[Path, typer.Option(help="Directory of the bundle with the new encoder.")],
    head_ids: Annotated[
        list[str] | None,
        typer.Option("--only", help="Id of a head. May be repeated.", show_default="all heads"),
    ] = None,
    max_accuracy_loss: Annotated[
        float, typer.Option("--worse", min=0, help="Points of accuracy that a head may lose.")
    ] = 1.0,
    group: Annotated[
        str | None,
        typer.Option(
            "--ring",
            help="Encoder group of the new encoder.",
            show_default="name of the bundle",
            callback=_parse_encoder_group,
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Directory to search for training data that has moved. May be repeated."),
    ] = None,
    max_loss: MaxLossOption = MAX_LOSS,
    work: StatesCacheOption = None,
) -> None:
    """Retrain the heads of a store for another encoder, and move them one by one.

    Each head is trained on the file that its head.json names. The checksum must be unchanged. A
    head moves if it is about as accurate as before. Otherwise it stays, the command prints the
    reason and exits with 1. Ctrl-C is safe: run the command again to resume.
    """
    loaded = load_bundle(bundle)
    if "://" not in target:  # open_store would report a missing directory as a lost disk
        Path(target).mkdir(parents=True, exist_ok=True)
    with _states_cache(work) as states_cache:
        plan = RefitPlan(
            old=open_store(source),
            new=open_store(target),
            group=group or loaded.manifest.name,
            max_accuracy_loss=max_accuracy_loss,
            directories=data or [],
            maker=HeadMaker(loaded, states_cache, max_loss, _report),
        )
        failed = refit_heads(plan, head_ids or [])
    raise typer.Exit(1 if failed else 0)


_BENCHMARK_IDS = [each.id for each in BENCHMARKS]


def measure_heads(
    data: Annotated[
        Path,
        typer.Option(
            help="Directory of public data sets, with files such as banking77-test.jsonl.zst."
        ),
    ] = Path("../shared/data/heads"),
    head_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help=f"Id of a head: {', '.join(_BENCHMARK_IDS)}. May be repeated.",
            show_default="all heads",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to write the heads to.", show_default="not written"),
    ] = None,
    bundle: options.BundleOption = options.BUNDLE,
    work: options.WorkOption = options.WORK,
    as_json: AsJson = False,
) -> None:
    """Train a head on each public data set and measure it on the test set.

    With --out, the command makes the heads that come with Winnow.
    """
    if unknown := set(head_ids or []) - set(_BENCHMARK_IDS):
        raise DataError(
            f"unknown head {', '.join(sorted(unknown))}: choose from {', '.join(_BENCHMARK_IDS)}"
        )
    maker = HeadMaker(load_bundle(bundle), Workspace(work).states, MAX_LOSS, _report)
    results: dict[str, dict[str, Any]] = {}
    for each in BENCHMARKS:
        if head_ids and each.id not in head_ids:
            continue
        _report(f"{each.id}: {each.name}")
        started = time.monotonic()
        figures = _make_benchmark_head(each, data, out, maker)
        results[each.id] = {**figures, "seconds": round(time.monotonic() - started)}
        if not as_json:
            typer.echo("\n".join([each.id, *(f"  {k}: {v}" for k, v in results[each.id].items())]))
    if as_json:
        print_json(results)


def _make_benchmark_head(
    benchmark: Benchmark, data: Path, out: Path | None, maker: HeadMaker
) -> dict[str, float]:
    """Returns the accuracy of a head in percent, and the size of its model in bytes."""
    naming = HeadNaming(
        id=benchmark.id, licences={"training data": benchmark.licence}, names_only=True
    )
    with TemporaryDirectory() as directory:
        target = (out or Path(directory)) / benchmark.id
        head = make_head(benchmark.job(data), naming, maker, target)
        return {**head.accuracy, "bytes": head.model.bytes}
