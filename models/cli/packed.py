"""Commands of `winnow models` that train on a GPU."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.data import DataDirectory
from models.network.restoring import restore_weights
from models.network.weights import open_minilm, open_tokenizer
from models.packed.networks import ENCODER, READER, TEACHER, load_projections, save_networks
from models.packed.packing import PackPlan, write_pack
from models.steps import late_interaction, packed
from models.steps.bundle import MINILM_LAYERS
from models.steps.late_interaction import choose_projection
from models.steps.packed_reader import ReaderTraining, ReaderTrainingBudget
from models.steps.split_reader import bundle_weights
from models.training.loop import Schedule
from winnow.bundle import load_bundle
from winnow.quoting import many

PackOption = Annotated[Path, typer.Option(help="Directory that `winnow models pack` wrote.")]
DeviceOption = Annotated[str, typer.Option(help="PyTorch's device: cuda, cuda:1 or cpu.")]
SplitLayersOption = Annotated[
    int,
    typer.Option("--apart", min=1, max=MINILM_LAYERS - 1, help="Split layers of the reader."),
]
_PACK, _SPLIT_LAYERS, _DEVICE = Path("var/pack"), 3, "cuda"


def pack(
    data: options.DataOption = options.DATA,
    base_weights: options.WeightsOption = options.WEIGHTS,
    bundle: options.BundleOption = options.BUNDLE,
    teacher: Annotated[
        Path, typer.Option(help="Bundle whose full cross-encoder is the teacher.")
    ] = options.TEACHER,
    out: Annotated[Path, typer.Option(help="Directory to write the pack to.")] = _PACK,
    split_layers: SplitLayersOption = _SPLIT_LAYERS,
    clozes: Annotated[int, typer.Option(min=0, help="Cloze questions to make.")] = 60_000,
    wikipedia: Annotated[
        float, typer.Option(min=0, max=1, help="Share of Wikipedia's passages to pack.")
    ] = 1.0,
    documents: Annotated[
        Path | None,
        typer.Option(help="Questions about documents, from `winnow models ask-documents`."),
    ] = None,
    changed: Annotated[
        int, typer.Option(min=0, help="Questions with a changed premise to make, of each kind.")
    ] = 0,
) -> None:
    """Tokenise all passages and questions for training on a GPU.

    Also writes the networks of --bundle, which has a split reader, and of --teacher. Takes about
    ten minutes on one core.
    """
    student, whole = load_bundle(bundle), load_bundle(teacher)
    states = {
        ENCODER: restore_weights(student.passage_encoder),
        TEACHER: restore_weights(whole.reader),
        READER: bundle_weights(bundle, split_layers),
    }
    with open_minilm(base_weights) as directory:
        config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        words = student.manifest.retrieval.words
        save_networks(out / packed.NETWORKS, config, words, states)
        plan = PackPlan(clozes=clozes, wikipedia=wikipedia, documents=documents, changed=changed)
        count = write_pack(DataDirectory(data), open_tokenizer(directory), out, plan)
    typer.echo(f"{out}: {many(count, 'question')}")


def train_retrieval(
    pack: PackOption = _PACK,
    work: options.WorkOption = options.WORK,
    device: DeviceOption = _DEVICE,
    mining: Annotated[float, typer.Option(min=1, help="Seconds to search for candidates.")] = 45,
    late: Annotated[float, typer.Option(min=1, help="Seconds to train late interaction.")] = 80,
    encoder: Annotated[
        float,
        typer.Option(min=0, help="Seconds for each of two rounds of encoder training. 0 for none."),
    ] = 60,
    mean_late: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds to train late interaction for the mean encoder; 0 for none."
        ),
    ] = 30,
) -> None:
    """Train late interaction and the encoder on a GPU.

    Also measures both on the development sets, which are never trained on. Writes figures.json,
    late-shipped.pt, late-mean.pt and the run of the encoder. An interrupted command starts from the
    beginning.
    """
    budget = packed.TrainingBudget(mining=mining, late=late, encoder=encoder, mean_late=mean_late)
    packed.RetrievalTraining(pack, work, device, timed_report()).run(budget)


def train_packed_reader(
    pack: PackOption = _PACK,
    work: options.WorkOption = options.WORK,
    device: DeviceOption = _DEVICE,
    split_layers: SplitLayersOption = _SPLIT_LAYERS,
    mining: Annotated[float, typer.Option(min=1, help="Seconds to search for candidates.")] = 45,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds to train.")] = 380,
    share: Annotated[
        float,
        typer.Option(min=0, max=1, help="Weight of the trained reader in the mean that is saved."),
    ] = 0.75,
    rate: options.RateOption = 1e-4,
    quantised_share: options.QuantisedShareOption = 0.15,
    seed: options.SeedOption = options.SEED,
) -> None:
    """Train the split reader on a GPU.

    Training starts from the reader of the pack, which also teaches spans. The result is the mean
    of the weights before and after. Also measures the readers and writes figures.json. `winnow
    models assemble --apart` makes a bundle of the result.
    """
    schedule = Schedule(rate, quantised=quantised_share, seed=seed)
    budget = ReaderTrainingBudget(mining=mining, training=seconds, share=share)
    training = ReaderTraining(pack, work, device, split_layers, report=timed_report())
    training.run(schedule, budget)


def add_late_interaction(
    projections: Annotated[
        Path,
        typer.Option(help="Projections of `train-retrieval`, or bundles/late-interaction.npz."),
    ],
    out: Annotated[Path, typer.Option(help="Directory of the new bundle; must not exist.")],
    bundle: options.BundleOption = options.BUNDLE,
    projection: Annotated[
        str, typer.Option(help="Name of the projection, as in figures.json.")
    ] = "layers 4+6, 32 values",
    version: options.VersionOption = options.VERSION,
) -> None:
    """Copy a bundle and add late interaction to it.

    Run `winnow models calibrate` next: it fits the weights of the ranking. Indexes and heads of the
    bundle stay valid. `winnow index token-vectors` adds the token vectors to an index.
    """
    chosen = choose_projection(load_projections(projections), projection)
    manifest = late_interaction.add_late_interaction(bundle, out, chosen, version)
    typer.echo(f"{out}: {manifest.name} {manifest.version}, {chosen.name}")


def timed_report() -> packed.Report:
    """Returns a function that prints lines to standard error, with the seconds since this call."""
    started = time.monotonic()

    def report(line: str) -> None:
        typer.echo(f"{time.monotonic() - started:7.1f} s  {line}", err=True)

    return report
