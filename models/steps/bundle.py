"""Makes bundles of trained networks: one bundle, or a ladder of bundles of several sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.assemble import BundleDescription, BundleSources, amend_manifest, assemble
from models.steps.training import MEMBERS
from models.training import checkpoint
from models.workspace import ReaderKind, Workspace
from winnow.bundle import read_manifest
from winnow.inference.runtime import FLOAT, INT8

PRETRAINED = "sentence-transformers/all-MiniLM-L6-v2"
"""Model whose weights all networks start from."""
DIMENSION = 384
"""Number of values of MiniLM's vectors."""
MAX_ANSWER_TOKENS = 24


@dataclass(frozen=True, slots=True)
class BundleNaming:
    """Manifest fields that the user chooses."""

    name: str
    version: str
    max_answer_tokens: int


def make_bundle(
    weights: Path,
    workspace: Workspace,
    target: Path,
    naming: BundleNaming,
    kind: ReaderKind,
    encoder_of: Path | None = None,
) -> None:
    """Assembles the int8 graphs of a workspace as a bundle with default score weights.

    If the encoder was copied from the bundle `encoder_of`, provenance and weight of matching words
    are also copied from that bundle.
    """
    reader, lower = workspace.graph("reader", "int8", kind.layers), None
    if kind.split_layers:
        reader, lower = (
            workspace.split_graph(part, "int8", kind.split_layers) for part in ("upper", "lower")
        )
    sources = BundleSources(
        encoder=workspace.graph("encoder", "int8"),
        reader=reader,
        tokenizer=weights / "tokenizer.json",
        lower=lower,
    )
    description = BundleDescription(
        name=naming.name,
        version=naming.version,
        precision="int8",
        dimension=DIMENSION,
        max_answer_tokens=naming.max_answer_tokens,
        provenance=_provenance(workspace, encoder_of, kind),
    )
    retrieval = None if encoder_of is None else read_manifest(encoder_of).retrieval
    assemble(target, sources, description)
    if retrieval is not None:
        amend_manifest(target, retrieval=retrieval.model_dump())


def _provenance(workspace: Workspace, encoder_of: Path | None, kind: ReaderKind) -> dict[str, Any]:
    readers = [path for path in workspace.reader_run_paths(MEMBERS) if path.is_file()]
    before = {} if encoder_of is None else dict(read_manifest(encoder_of).provenance)
    for key in ("student", "apart"):  # these keys describe the other bundle's reader
        before.pop(key, None)
    if readers:  # the new readers were trained without the other bundle's ranking
        before.pop("ranking", None)
    ranking = _finished_run(workspace.run_checkpoint_path("ranking"))
    return before | {
        "weights": PRETRAINED,
        "command": "winnow models train-apart" if kind.split_layers else "winnow models build",
        **(
            {"encoder": _finished_run(workspace.run_checkpoint_path("encoder"))}
            if encoder_of is None
            else {}
        ),
        **({"readers": [_finished_run(path) for path in readers]} if readers or not before else {}),
        **({"ranking": ranking} if ranking or not before else {}),
        **(
            {"student": _finished_run(workspace.run_checkpoint_path("reader", kind.layers))}
            if kind.layers
            else {}
        ),
        **(
            {"apart": _split_runs(workspace.split_run_checkpoint_path(kind.split_layers))}
            if kind.split_layers
            else {}
        ),
    }


def _split_runs(last: Path) -> list[dict[str, Any]]:
    """Returns the runs that made a split reader, in the order of training, without repetition.

    Earlier runs are read from the records of the runs that started from their weights, because the
    checkpoint of an earlier run may have been overwritten.
    """
    runs: list[dict[str, Any]] = []
    seen: set[Path] = set()
    path: Path | None = last
    while path is not None and path.resolve() not in seen:
        if path.is_dir():  # a bundle, which records its runs
            recorded = read_manifest(path).provenance.get("apart", [])
            return [*(run for run in recorded if run not in runs), *runs]
        seen.add(path.resolve())
        run = _finished_run(path)
        runs.insert(0, run or {"lost": "the checkpoint is not there any more"})
        # the path is removed because it reveals private directories
        initial_weights = run.get("plan", {}).get("apart", {}).pop("begun", "")
        path = Path(initial_weights) if initial_weights else None
    return runs


def _finished_run(path: Path) -> dict[str, Any]:
    """Returns steps and plan of a run, or an empty dict if the run is missing or not finished."""
    state = checkpoint.load_finished(path)
    return {"steps": state["step"], "plan": state["plan"]} if state else {}


LADDER_READERS = (4, 3, 2, 1)
"""Layers of the smaller readers of a ladder."""
LADDER_ENCODERS = (3, 2)
"""Layers of the smaller question encoders of a ladder."""
MINILM_LAYERS = 6
"""Layers of MiniLM."""


@dataclass(frozen=True, slots=True)
class LadderBundle:
    """Combination of a reader and a question encoder, from which `ladder` makes a bundle."""

    reader: int | None = None
    """Layers of the reader; None for all."""
    encoder: int | None = None
    """Layers of the question encoder; None for all."""
    reader_precision: str = INT8
    encoder_precision: str = INT8

    @property
    def name(self) -> str:
        """The name of the bundle: layers and precisions of its reader and its encoder."""
        return (
            f"reader-{self.reader or MINILM_LAYERS}-{self.reader_precision}-"
            f"encoder-{self.encoder or MINILM_LAYERS}-{self.encoder_precision}"
        )


def ladder_bundles(reader: int | None, encoders: Sequence[int]) -> list[LadderBundle]:
    """Returns the bundles with this reader that take their score from another bundle.

    The other bundle, for which the score is fitted, has the whole encoder in int8. It is left out.
    """
    small = [LadderBundle(reader, layers) for layers in encoders]
    exact = [
        LadderBundle(reader, reader_precision=FLOAT),
        LadderBundle(reader, encoder_precision=FLOAT),
        LadderBundle(reader, None, FLOAT, FLOAT),
    ]
    return [*small, *exact]


def make_ladder_bundle(
    weights: Path, workspace: Workspace, target: Path, bundle: LadderBundle
) -> None:
    """Assembles a bundle of the ladder. Its passage encoder is the whole encoder in int8."""
    encoder = workspace.graph("encoder", INT8)
    questions = workspace.graph("encoder", bundle.encoder_precision, bundle.encoder)
    reader_layers, encoder_layers = bundle.reader or MINILM_LAYERS, bundle.encoder or MINILM_LAYERS
    description = BundleDescription(
        name=f"reader {reader_layers}, encoder {encoder_layers}",
        version="1.0.0",
        precision=bundle.reader_precision,
        dimension=DIMENSION,
        max_answer_tokens=MAX_ANSWER_TOKENS,
        question_precision=bundle.encoder_precision,
        provenance={"weights": PRETRAINED, "command": "winnow models ladder"},
    )
    sources = BundleSources(
        encoder=encoder,
        reader=workspace.graph("reader", bundle.reader_precision, bundle.reader),
        tokenizer=weights / "tokenizer.json",
        questions=None if questions == encoder else questions,
    )
    assemble(target, sources, description)


def copy_score(source: Path, target: Path) -> None:
    """Copies the weights of score, retrieval, early stopping and texts to `target`.

    The two bundles have readers with the same number of layers.
    """
    manifest = read_manifest(source)
    amend_manifest(
        target,
        score=manifest.score.model_dump(),
        retrieval=manifest.retrieval.model_dump(),
        stopping=[entry.model_dump() for entry in manifest.stopping],
        text_relevance=manifest.text_relevance and manifest.text_relevance.model_dump(),
    )
