"""`winnow models`: train, export, quantise, calibrate, verify and measure; export others'."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from models import steps
from models.assemble import Description, amend
from models.data.directory import DataDirectory
from models.exporting import cli as exporting
from models.ladder import (
    ENCODERS,
    READERS,
    Rung,
    export_small_encoder,
    export_small_reader,
    make_rung,
    rungs,
    share_score,
    train_small_encoder,
    train_small_reader,
)
from models.network.weights import minilm
from models.training.distilling_task import DistillingPlan
from models.training.encoding_task import EncodingPlan
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan
from models.training.reading_task import ReadingPlan
from models.workspace import Workspace
from winnow.bundle import default_bundle, read_manifest

app = typer.Typer(no_args_is_help=True)
app.command()(exporting.export)
app.command()(exporting.random)

_ENCODED = {
    "squad": 3.0,
    "squad-tokenised": 2.0,
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 2.0,
}
"""How often the encoder sees the passages of each source."""

_Data = Annotated[Path, typer.Option(help="Directory of public data (qa/, passages/).")]
_Weights = Annotated[Path, typer.Option(help="MiniLM weights: a directory, or a wheel with them.")]
_Work = Annotated[Path, typer.Option(help="Directory of intermediate results.")]
_Bundle = Annotated[Path, typer.Option(help="The bundle.")]
_Extra = Annotated[int, typer.Option(min=1, help="Wikipedia passages to retrieve from.")]
_MaxLoss = Annotated[float, typer.Option(help="Most exact match that int8 may lose on a set.")]
_Quantised = Annotated[
    float, typer.Option(min=0, max=1, help="Share of the run, at its end, that imitates int8.")
]
_Scale = Annotated[float, typer.Option(min=0.01, help="Longer or shorter by this factor.")]
_Seed = Annotated[int, typer.Option(help="Seed.")]
_Layers = Annotated[
    int | None,
    typer.Option(min=1, help="Train a student with so many layers, taught by the trained one."),
]
_Every = Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_DATA, _WEIGHTS, _WORK = Path("../shared/data"), Path("var/minilm"), Path("var/models")
_BUNDLE = default_bundle()


@app.command()
def build(
    data: _Data = _DATA,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    bundle: _Bundle = _BUNDLE,
    extra: _Extra = 25_000,
    scale: _Scale = 1.0,
    seed: _Seed = 1,
    max_loss: _MaxLoss = 0.5,
) -> None:
    """Make a bundle from data and pretrained weights: every step below, in order.

    Interrupted, the same command goes on. About three hours on two cores with bfloat16.
    """
    with minilm(weights) as directory:
        _mine_if_needed(data, directory, work, extra)
        train_encoder(directory, work, scale=scale, seed=seed)
        _mine_if_needed(data, directory, work, extra)
        train_reader(directory, work, scale=scale, seed=seed)
        assemble(bundle, directory, work)
        calibrate(bundle, work, seed)
        verify(bundle, data, directory, work, max_loss, record_gold=True)


def _mine_if_needed(data: Path, weights: Path, work: Path, extra: int) -> None:
    place = Workspace(work).made()
    steps.export_encoder(weights, place)
    if not steps.is_mined(place):
        mine(data, weights, work, extra)


@app.command()
def mine(
    data: _Data = _DATA,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    extra: _Extra = 25_000,
) -> None:
    """Export the encoder, then give every training question its hard negatives."""
    place = Workspace(work).made()
    with minilm(weights) as directory:
        steps.export_encoder(directory, place)
        count = steps.mine_questions(DataDirectory(data), directory, place, extra)
    typer.echo(f"{place.mined}: {count} questions")


@app.command()
def train_encoder(
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    data: _Data = _DATA,
    layers: _Layers = None,
    passages: Annotated[int, typer.Option(min=2, help="Passages a step.")] = 32,
    rate: Annotated[
        float | None,
        typer.Option(min=0, help="Peak learning rate.", show_default="1e-4, of students 5e-4"),
    ] = None,
    quantised: _Quantised = 0.25,
    scale: _Scale = 1.0,
    seed: _Seed = 1,
    every: _Every = 50,
) -> None:
    """Train the encoder on mined questions. Interrupted, the same command goes on.

    Mine again afterwards: another encoder makes other mistakes. A student encodes questions only,
    into the same space, so nothing else changes.
    """
    place = Workspace(work).made()
    with minilm(weights) as directory:
        if layers is None:
            plan = EncodingPlan(_scaled(_ENCODED, scale), passages)
            schedule = Schedule(rate or 1e-4, warmup=0.1, quantised=quantised, seed=seed)
            steps.train_encoder(directory, place, plan, schedule, every)
        else:
            schedule = Schedule(rate or 5e-4, warmup=0.1, quantised=quantised, seed=seed)
            small = QuestionPlan(layers, passes=scale)
            train_small_encoder(directory, place, DataDirectory(data), small, schedule, every)


@app.command()
def train_reader(
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    layers: _Layers = None,
    members: Annotated[
        int,
        typer.Option(min=1, max=steps.MEMBERS, help="Runs, whose readers are averaged."),
    ] = steps.MEMBERS,
    negatives: Annotated[int, typer.Option(min=1, help="Negatives of each question.")] = 1,
    questions: Annotated[int, typer.Option(min=1, help="Questions a step.")] = 16,
    rate: Annotated[float, typer.Option(min=0, help="Peak learning rate.")] = 2e-4,
    quantised: _Quantised = 0.25,
    scale: _Scale = 1.0,
    seed: _Seed = 1,
    every: _Every = 50,
) -> None:
    """Train the reader, or a smaller one that the trained one teaches (--layers).

    Interrupted, the same command goes on from the last checkpoint.

    About forty minutes a run on two cores with bfloat16. Preload jemalloc where you can: glibc's
    allocator may spend most of the time in the kernel.
    """
    place = Workspace(work).made()
    plan = ReadingPlan(_scaled(steps.READ, scale), questions, negatives)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        if layers is None:
            for number, run in enumerate(place.reader_runs(members)):
                steps.train_reader(
                    directory, place, plan, replace(schedule, seed=seed + number), every, run
                )
        else:
            both = (plan, DistillingPlan(layers))
            train_small_reader(directory, place, both, schedule, every)


@app.command()
def ladder(
    out: Annotated[Path, typer.Option(help="Directory to write the bundles under.")],
    bundle: _Bundle = _BUNDLE,
    data: _Data = _DATA,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    reader: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Layers of a smaller reader.", show_default="4 3 2 1"),
    ] = None,
    encoder: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Layers of a smaller question encoder.", show_default="3 2"),
    ] = None,
    scale: _Scale = 0.4,
    seed: _Seed = 1,
) -> None:
    """Train smaller readers and question encoders, and make a bundle of every combination.

    Needs what `build` left in --work, and its bundle. Interrupted, the same command goes on.
    """
    place = Workspace(work).made()
    readers, encoders = reader or list(READERS), encoder or list(ENCODERS)
    with minilm(weights) as directory:
        for layers in encoders:
            train_encoder(directory, work, data, layers, seed=seed)
            export_small_encoder(directory, place, layers)
        for layers in readers:
            train_reader(directory, work, layers, scale=scale, seed=seed)
            export_small_reader(directory, place, layers)
        for size in (None, *readers):
            first = bundle if size is None else out / Rung(size).name
            if size is not None:
                make_rung(directory, place, first, Rung(size))
                calibrate(first, work, seed)
            for rung in rungs(size, encoders):
                make_rung(directory, place, out / rung.name, rung)
                share_score(first, out / rung.name)
                typer.echo(out / rung.name)


@app.command()
def assemble(
    bundle: _Bundle = _BUNDLE,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    name: Annotated[str, typer.Option(help="Name of the bundle.")] = "minilm-l6",
    version: Annotated[str, typer.Option(help="Version of the bundle.")] = "1.0.0",
    max_answer_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 10,
) -> None:
    """Turn both trained networks into int8 graphs and put a bundle together."""
    place = Workspace(work).made()
    with minilm(weights) as directory:
        steps.export_encoder(directory, place)
        steps.export_reader(directory, place)
        about = Description(
            name, version, "int8", 384, max_answer_tokens, provenance=_provenance(place)
        )
        steps.make_bundle(directory, place, bundle, about)
    typer.echo(f"{bundle}: {sum(f.stat().st_size for f in bundle.iterdir()) / 1e6:.1f} MB")


@app.command()
def calibrate(
    bundle: _Bundle = _BUNDLE,
    work: _Work = _WORK,
    seed: _Seed = 1,
) -> None:
    """Fit the final score on training questions and write it into the bundle."""
    score = steps.calibrate(Workspace(work), bundle, seed, typer.echo)
    typer.echo(
        f"score = {score.relevance:.4f} relevance + {score.span:.4f} span "
        f"+ {score.distance:.4f} distance; no answer below {score.no_answer_below:.3f}"
    )


@app.command()
def verify(
    bundle: _Bundle = _BUNDLE,
    data: _Data = _DATA,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    max_loss: _MaxLoss = 0.5,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Questions of each set.", show_default="all")
    ] = None,
    record_gold: Annotated[
        bool, typer.Option("--record", help="Write the measured accuracy into the bundle, too.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Compare PyTorch, ONNX and int8 on real text; exit 1 if the bundle is to be refused."""
    with minilm(weights) as directory:
        verdict, gold = steps.verify(
            directory, Workspace(work), bundle, DataDirectory(data), max_loss, limit
        )
    if record_gold:
        _record(bundle, gold=gold)
    if as_json:
        typer.echo(json.dumps(verdict.as_json(), indent=2))
    else:
        typer.echo(
            f"encoder: ONNX differs from PyTorch by {verdict.encoder_difference:.1e}; "
            f"int8 has cosine {verdict.encoder_cosine:.4f}"
        )
        typer.echo(f"reader: ONNX differs from PyTorch by {verdict.reader_difference:.1e}")
        for name, found in verdict.exact_match.items():
            said = ", ".join(f"{exact:.2f} {precision}" for precision, exact in found.items())
            typer.echo(f"{name}: exact match {said}")
        for fault in verdict.faults:
            typer.echo(f"refused: {fault}")
    raise typer.Exit(1 if verdict.faults else 0)


@app.command()
def measure(bundle: _Bundle = _BUNDLE, data: _Data = _DATA, work: _Work = _WORK) -> None:
    """Measure exact match and F1 at gold paragraphs and write them into the bundle."""
    gold = steps.gold_figures(Workspace(work), bundle, DataDirectory(data), None)
    _record(bundle, gold=gold)
    typer.echo(json.dumps(gold, indent=2))


@app.command()
def record(
    evaluation: Annotated[
        list[str], typer.Option(help="NAME=FILE: what `winnow evaluate --json` printed for a set.")
    ],
    index: Annotated[str, typer.Option(help="What the index held, in words.")],
    bundle: _Bundle = _BUNDLE,
) -> None:
    """Write the curve of a running system (accuracy by passages read) into the bundle."""
    curves: dict[str, Any] = {}
    for each in evaluation:
        name, _, path = each.partition("=")
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        curves[name] = {
            str(figures["passages"]): {
                "em": round(figures["exact_match"], 2),
                "f1": round(figures["f1"], 2),
            }
            for figures in found["figures"]
        }
    _record(bundle, passages_read=curves, index=index)
    typer.echo(json.dumps(curves, indent=2))


def _scaled(passes: dict[str, float], by: float) -> dict[str, float]:
    return {source: times * by for source, times in passes.items()}


def _record(bundle: Path, **parts: Any) -> None:
    amend(bundle, accuracy={**read_manifest(bundle).accuracy, **parts})


def _provenance(work: Workspace) -> dict[str, Any]:
    from models.training import checkpoint  # noqa: PLC0415

    readers = [path for path in work.reader_runs(steps.MEMBERS) if path.is_file()]
    return {
        "weights": "sentence-transformers/all-MiniLM-L6-v2",
        "command": "winnow models build",
        "encoder": _run(checkpoint.load(work.run("encoder"))),
        "readers": [_run(checkpoint.load(path)) for path in readers],
    }


def _run(state: dict[str, Any] | None) -> dict[str, Any]:
    return {"steps": state["step"], "plan": state["plan"]} if state else {}
