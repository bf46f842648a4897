"""`winnow models`: train, export, quantise, calibrate, verify and measure."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models import steps
from models.assemble import Description, amend
from models.questions import DataDirectory
from models.training import Plan
from models.weights import minilm
from models.workspace import Workspace
from winnow.bundle import default_bundle, read_manifest

app = typer.Typer(no_args_is_help=True)

_PASSES = {
    "squad": 1.4,
    "squad-tokenised": 1.0,
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 1.0,
}

_Data = Annotated[Path, typer.Option(help="Directory of public data (qa/, passages/).")]
_Weights = Annotated[Path, typer.Option(help="MiniLM weights: a directory, or a wheel with them.")]
_Work = Annotated[Path, typer.Option(help="Directory of intermediate results.")]
_Bundle = Annotated[Path, typer.Option(help="The bundle.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_DATA, _WEIGHTS, _WORK = Path("../shared/data"), Path("var/minilm"), Path("var/models")
_BUNDLE = default_bundle()


@app.command()
def mine(
    data: _Data = _DATA,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    extra: Annotated[int, typer.Option(help="Wikipedia passages to retrieve from.")] = 25_000,
) -> None:
    """Export the encoder, then give every training question its hard negatives."""
    place = Workspace(work).made()
    with minilm(weights) as directory:
        steps.export_encoder(directory, place)
        count = steps.mine_questions(DataDirectory(data), directory, place, extra)
    typer.echo(f"{place.mined}: {count} questions")


@app.command()
def train_reader(
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    negatives: Annotated[int, typer.Option(min=1, help="Negatives of each question.")] = 2,
    questions: Annotated[int, typer.Option(min=1, help="Questions a step.")] = 16,
    rate: Annotated[float, typer.Option(min=0, help="Peak learning rate.")] = 2e-4,
    quantised: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the run, at its end, that imitates int8.")
    ] = 0.25,
    scale: Annotated[float, typer.Option(min=0.01, help="Longer or shorter by this factor.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed.")] = 1,
    every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 50,
) -> None:
    """Train the reader. Interrupted, the same command goes on from the last checkpoint.

    About fifty minutes on two cores with bfloat16. Preload jemalloc where you can: glibc's
    allocator may spend most of the time in the kernel.
    """
    passes = {source: times * scale for source, times in _PASSES.items()}
    plan = Plan(passes, questions, negatives, rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        steps.train(directory, Workspace(work).made(), plan, every)


@app.command()
def export(
    bundle: _Bundle = _BUNDLE,
    weights: _Weights = _WEIGHTS,
    work: _Work = _WORK,
    name: Annotated[str, typer.Option(help="Name of the bundle.")] = "minilm-l6",
    version: Annotated[str, typer.Option(help="Version of the bundle.")] = "1.0.0",
    max_answer_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 10,
) -> None:
    """Export the trained reader, quantise it, and put a bundle together."""
    place = Workspace(work).made()
    with minilm(weights) as directory:
        if not place.graph("encoder", "int8").exists():
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
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 1,
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
    max_loss: Annotated[
        float, typer.Option(help="Most exact match that int8 may lose on a set.")
    ] = 0.5,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Questions of each set.", show_default="all")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Compare PyTorch, ONNX and int8 on real text; exit 1 if the bundle is to be refused."""
    with minilm(weights) as directory:
        verdict = steps.verify(
            directory, Workspace(work), bundle, DataDirectory(data), max_loss, limit
        )
    if as_json:
        typer.echo(json.dumps(verdict.as_json(), indent=2))
    else:
        typer.echo(
            f"encoder: ONNX differs from PyTorch by {verdict.encoder_difference:.1e}; "
            f"int8 has cosine {verdict.encoder_cosine:.4f}"
        )
        typer.echo(f"reader: ONNX differs from PyTorch by {verdict.reader_difference:.1e}")
        for name, exact in verdict.em_float.items():
            typer.echo(
                f"{name}: exact match {exact:.2f} float32, {verdict.em_quantised[name]:.2f} int8"
            )
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


def _record(bundle: Path, **parts: Any) -> None:
    amend(bundle, accuracy={**read_manifest(bundle).accuracy, **parts})


def _provenance(work: Workspace) -> dict[str, Any]:
    from models import checkpoint  # noqa: PLC0415

    state = checkpoint.load(work.checkpoint) or {}
    return {
        "weights": "sentence-transformers/all-MiniLM-L6-v2",
        "training_data": sorted(state.get("plan", {}).get("passes", {})),
        "command": "winnow models mine && winnow models train-reader",
        "plan": state.get("plan", {}),
        "steps": state.get("step", 0),
    }
