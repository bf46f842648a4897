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
from models.heads.refit import Refit
from models.heads.refit import refit as refit_heads
from models.heads.rows import Fields
from models.heads.settings import BENCHMARKS, OUT_OF_SCOPE, Benchmark, HeadJob, HeadPlan
from models.heads.unfrozen import EPOCHS as UNFROZEN_EPOCHS
from models.heads.unfrozen import measure_unfrozen
from models.network.weights import minilm
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.cli.output import AsJson, print_json
from winnow.heads.manifest import Kind, validate_head_id
from winnow.heads.store import open_store
from winnow.quoting import many, quoted

MAX_LOSS = 0.5
_RING = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PLAN = HeadPlan()
_FIELDS = {Kind.SEQUENCE: ("text", "label"), Kind.TOKEN: ("tokens", "labels")}


def _id(value: str) -> str:
    try:
        return validate_head_id(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _ring(value: str | None) -> str | None:
    """Returns a name; refuses one that no encoder group of a front can have."""
    if value is not None and not _RING.fullmatch(value):
        raise typer.BadParameter(
            f"{quoted(value)} is no name of an encoder group: use 1 to 64 of a-z, 0-9, dot, dash "
            "and underscore, as in --rings of `winnow front`"
        )
    return value


def _licences(values: list[str]) -> dict[str, str]:
    found = dict(value.partition("=")[::2] for value in values)
    if not all(name and licence for name, licence in found.items()):
        raise typer.BadParameter("a licence is WHAT=LICENCE, such as data='CC BY 4.0'")
    return found


KindOption = Annotated[
    Kind, typer.Option(help="Labels of whole texts (sequence) or of parts of texts (token).")
]
MaxLossOption = Annotated[
    float,
    typer.Option(
        min=0,
        help="Maximum loss of accuracy by int8, in points. Above it the head stays in float32.",
    ),
]
KeptOption = Annotated[
    Path | None,
    typer.Option(
        "--work",
        help="Directory to keep the states of texts in, for the next run on the same texts.",
        show_default="not kept",
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
        Path, typer.Option(help="Labelled texts: CSV or JSON lines, .gz and .zst, too.")
    ],
    kind: KindOption,
    name: Annotated[str, typer.Option("--id", help="Id of the head.", callback=_id)],
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to write the head to.", show_default="required"),
    ] = None,
    bundle: options.BundleOption = options.BUNDLE,
    test: Annotated[
        Path | None, typer.Option(help="Labelled texts to measure the head on.")
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="Labelled texts to stop training and to calibrate with.",
            show_default="a part of --data",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Owner of the head.")] = "",
    version: Annotated[int, typer.Option(min=1, help="Version of the head.")] = 1,
    text_field: TextFieldOption = None,
    label_field: LabelFieldOption = None,
    multi_label: Annotated[
        bool,
        typer.Option(
            "--multi-label", help="A text may have several labels: a list, or a|b in CSV."
        ),
    ] = False,
    out_of_scope: Annotated[
        str, typer.Option(help="Label of texts that none of the other labels fits.")
    ] = OUT_OF_SCOPE,
    licence: Annotated[
        list[str] | None,
        typer.Option(help="Licence to record, as WHAT=LICENCE; may be given several times."),
    ] = None,
    names_only: Annotated[
        bool,
        typer.Option("--names-only", help="Record the names of files without their directories."),
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the texts, at most.",
            show_default=f"{_PLAN.epochs}; {UNFROZEN_EPOCHS} with --unfreeze",
        ),
    ] = None,
    patience: Annotated[
        int, typer.Option(min=1, help="Passes without improvement that end the training.")
    ] = _PLAN.patience,
    batch: Annotated[int, typer.Option(min=1, help="Texts in a training step.")] = _PLAN.batch,
    rate: Annotated[float, typer.Option(min=1e-9, help="Peak learning rate.")] = _PLAN.rate,
    dropout: Annotated[
        float, typer.Option(min=0, max=0.95, help="Share of values that training leaves out.")
    ] = _PLAN.dropout,
    hidden: Annotated[
        int, typer.Option(min=1, max=4096, help="Values of the hidden layer.")
    ] = _PLAN.hidden,
    queries: Annotated[
        int, typer.Option(min=1, max=64, help="Weighted means of a text that are looked at.")
    ] = _PLAN.queries,
    held_out: Annotated[
        float,
        typer.Option(min=0.01, max=0.5, help="Share of --data to hold out without --validation."),
    ] = _PLAN.held_out,
    max_loss: MaxLossOption = MAX_LOSS,
    unfreeze: Annotated[
        bool,
        typer.Option(
            "--unfreeze", help="Train the encoder, too, and only say how right the head is then."
        ),
    ] = False,
    weights: options.WeightsOption = options.WEIGHTS,
    work: KeptOption = None,
    seed: options.SeedOption = options.SEED,
    as_json: AsJson = False,
) -> None:
    """Train a head on labelled texts, on the states of a bundle's encoder.

    Takes minutes on two cores. With --work, states are computed once and kept there. The encoder
    stays as it is. The head is exported in int8, calibrated, measured and written to --out; publish
    it with `winnow heads publish`.
    """
    if out is None and not unfreeze:
        raise typer.BadParameter(
            f"name a directory to write the head to, such as --out my-heads/{name}; or only "
            "measure, with --unfreeze"
        )
    plan = HeadPlan(
        epochs=epochs or _PLAN.epochs,
        patience=patience,
        batch=batch,
        rate=rate,
        dropout=dropout,
        hidden=hidden,
        queries=queries,
        held_out=held_out,
        seed=seed,
    )
    usual = _FIELDS[kind]
    fields = Fields(text_field or usual[0], label_field or usual[1], multi_label)
    job = HeadJob(
        kind=kind,
        data=data,
        fields=fields,
        plan=plan,
        validation=validation,
        test=test,
        out_of_scope=out_of_scope,
    )
    naming = HeadNaming(
        id=name,
        tenant=tenant,
        version=version,
        licences=_licences(licence or []),
        names_only=names_only,
    )
    with _states(work) as kept:
        maker = HeadMaker(load_bundle(bundle), kept, max_loss, _say)
        if unfreeze:
            with minilm(weights) as directory:
                _show(
                    f"{name}, with a separate encoder",
                    measure_unfrozen(job, maker, directory, epochs or UNFROZEN_EPOCHS),
                    as_json,
                )
            return
        assert out is not None, "checked above"
        made = make_head(job, naming, maker, out)
    size = f"{made.model.bytes / 1e6:.2f} MB"
    _show(f"{out}: {made.id}, {many(len(made.labels), 'label')}, {size}", made.accuracy, as_json)


@contextmanager
def _states(work: Path | None) -> Iterator[Path]:
    """Yields the directory of states: below `work`, or a temporary one."""
    if work is not None:
        yield Workspace(work).states
        return
    with TemporaryDirectory(prefix="winnow-states-") as directory:
        yield Path(directory)


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _show(title: str, figures: dict[str, float], as_json: bool) -> None:
    lines = [title, *(f"  {name}: {value:.2f} %" for name, value in figures.items())]
    if as_json:
        print_json(figures)
    else:
        typer.echo("\n".join(lines))


def refit(
    source: Annotated[str, typer.Option("--from", help="Store of the heads that are served now.")],
    target: Annotated[str, typer.Option("--to", help="Store of the heads of the new encoder.")],
    bundle: Annotated[Path, typer.Option(help="Directory of the bundle of the new encoder.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Head to refit; may be given several times.", show_default="all heads"),
    ] = None,
    worse: Annotated[
        float, typer.Option(min=0, help="Points of accuracy that a head may lose.")
    ] = 1.0,
    ring: Annotated[
        str | None,
        typer.Option(
            help="Encoder group of the new encoder.",
            show_default="name of the bundle",
            callback=_ring,
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Directory of training data that is not where it was."),
    ] = None,
    max_loss: MaxLossOption = MAX_LOSS,
    work: KeptOption = None,
) -> None:
    """Train the heads of a store again for another encoder, and move them one by one.

    Each head is trained on the file that its head.json names; the checksum must be the same. A head
    moves if it is about as accurate as before. Else it stays, the command prints the reason and
    exits with 1. Ctrl-C is safe: run the command again to resume.
    """
    loaded = load_bundle(bundle)
    if "://" not in target:  # a store that is not there yet cannot be told from a lost disk
        Path(target).mkdir(parents=True, exist_ok=True)
    with _states(work) as kept:
        plan = Refit(
            old=open_store(source),
            new=open_store(target),
            group=ring or loaded.manifest.name,
            worse=worse,
            directories=data or [],
            maker=HeadMaker(loaded, kept, max_loss, _say),
        )
        failed = refit_heads(plan, only or [])
    raise typer.Exit(1 if failed else 0)


_IDS = [each.id for each in BENCHMARKS]


def measure_heads(
    data: Annotated[
        Path, typer.Option(help="Directory of the public data sets, such as banking77-test.")
    ] = Path("../shared/data/heads"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Head to make: {', '.join(_IDS)}; may be given several times.",
            show_default="all heads",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to keep the heads in.", show_default="not kept"),
    ] = None,
    unfreeze: Annotated[
        bool,
        typer.Option("--unfreeze", help="Train the encoder, too, to see the cost of sharing it."),
    ] = False,
    bundle: options.BundleOption = options.BUNDLE,
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    as_json: AsJson = False,
) -> None:
    """Train a head on each public data set, and measure it on the test set.

    The heads that come with Winnow are made by this command, with --out.
    """
    if unknown := set(only or []) - set(_IDS):
        raise DataError(f"no such head: {', '.join(sorted(unknown))}; there are {', '.join(_IDS)}")
    maker = HeadMaker(
        load_bundle(bundle),
        Workspace(work).states,
        MAX_LOSS,
        _say,
    )
    found: dict[str, dict[str, Any]] = {}
    for each in BENCHMARKS:
        if only and each.id not in only:
            continue
        _say(f"{each.id}: {each.name}")
        began = time.monotonic()
        if unfreeze:
            with minilm(weights) as directory:
                figures = measure_unfrozen(each.job(data), maker, directory, UNFROZEN_EPOCHS)
        else:
            figures = _made(each, data, out, maker)
        found[each.id] = {**figures, "seconds": round(time.monotonic() - began)}
        if not as_json:
            typer.echo("\n".join([each.id, *(f"  {k}: {v}" for k, v in found[each.id].items())]))
    if as_json:
        print_json(found)


def _made(benchmark: Benchmark, data: Path, out: Path | None, maker: HeadMaker) -> dict[str, float]:
    """Returns the accuracy of a head, and the bytes of its model."""
    naming = HeadNaming(
        id=benchmark.id, licences={"training data": benchmark.licence}, names_only=True
    )
    with TemporaryDirectory() as directory:
        target = (out or Path(directory)) / benchmark.id
        made = make_head(benchmark.job(data), naming, maker, target)
        return {**made.accuracy, "bytes": made.model.bytes}
