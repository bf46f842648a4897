"""Bundles of trained networks: one, or a ladder of every combination of networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.assemble import Description, Sources, amend, assemble
from models.steps.training import MEMBERS
from models.training import checkpoint
from models.workspace import ReaderKind, Workspace
from winnow.bundle import read_manifest
from winnow.inference.runtime import FLOAT, INT8

PRETRAINED = "sentence-transformers/all-MiniLM-L6-v2"
"""The weights that everything started from."""
DIMENSION = 384
"""Dimension of MiniLM's vectors."""
MAX_ANSWER_TOKENS = 10


@dataclass(frozen=True, slots=True)
class BundleNaming:
    """Fields of a bundle that the user chooses."""

    name: str
    version: str
    max_answer_tokens: int


def make_bundle(
    weights: Path,
    work: Workspace,
    target: Path,
    naming: BundleNaming,
    kind: ReaderKind,
    encoder_of: Path | None = None,
) -> None:
    """Puts the int8 graphs together, with a first guess of the score.

    The bundle `encoder_of` has the encoder already, and the reader that training went on from: what
    is known of where they come from, and the worth of words in retrieval, is taken over.
    """
    reader, lower = work.graph("reader", "int8", kind.layers), None
    if kind.apart:
        reader, lower = (work.split_graph(half, "int8", kind.apart) for half in ("upper", "lower"))
    tokenizer = weights / "tokenizer.json"
    sources = Sources(
        encoder=work.graph("encoder", "int8"), reader=reader, tokenizer=tokenizer, lower=lower
    )
    about = Description(
        name=naming.name,
        version=naming.version,
        precision="int8",
        dimension=DIMENSION,
        max_answer_tokens=naming.max_answer_tokens,
        provenance=_provenance(work, encoder_of, kind),
    )
    retrieval = None if encoder_of is None else read_manifest(encoder_of).retrieval
    assemble(target, sources, about)
    if retrieval is not None:
        amend(target, retrieval=retrieval.model_dump())


def _provenance(work: Workspace, encoder_of: Path | None, kind: ReaderKind) -> dict[str, Any]:
    readers = [path for path in work.reader_runs(MEMBERS) if path.is_file()]
    before = {} if encoder_of is None else dict(read_manifest(encoder_of).provenance)
    for other in ("student", "apart"):  # they describe the other bundle's reader
        before.pop(other, None)
    if readers:  # trained again, without the ranking of that one
        before.pop("ranking", None)
    ranking = _finished_run(work.run("ranking"))
    return before | {
        "weights": PRETRAINED,
        "command": "winnow models train-apart" if kind.apart else "winnow models build",
        **({"encoder": _finished_run(work.run("encoder"))} if encoder_of is None else {}),
        **({"readers": [_finished_run(path) for path in readers]} if readers or not before else {}),
        **({"ranking": ranking} if ranking or not before else {}),
        **({"student": _finished_run(work.run("reader", kind.layers))} if kind.layers else {}),
        **({"apart": _split_runs(work.split_run(kind.apart))} if kind.apart else {}),
    }


def _split_runs(last: Path) -> list[dict[str, Any]]:
    """Returns the runs that made a split reader, each once, the first one first.

    A run may begin with the weights of another; that one may have been trained again since.
    """
    runs: list[dict[str, Any]] = []
    seen: set[Path] = set()
    path: Path | None = last
    while path is not None and path.resolve() not in seen:
        if path.is_dir():  # a bundle, which says what made it
            recorded = read_manifest(path).provenance.get("apart", [])
            return [*(run for run in recorded if run not in runs), *runs]
        seen.add(path.resolve())
        run = _finished_run(path)
        runs.insert(0, run or {"lost": "the checkpoint is not there any more"})
        # its directory is private
        begun = run.get("plan", {}).get("apart", {}).pop("begun", "")
        path = Path(begun) if begun else None
    return runs


def _finished_run(path: Path) -> dict[str, Any]:
    """Steps and plan of a finished run; empty for another, whose weights are not in the bundle."""
    state = checkpoint.finished(path)
    return {"steps": state["step"], "plan": state["plan"]} if state else {}


READERS = (4, 3, 2, 1)
"""Layers of the reader's students."""
ENCODERS = (3, 2)
"""Layers of the question encoder's students."""
WHOLE = 6
"""Layers of MiniLM."""


@dataclass(frozen=True, slots=True)
class LadderBundle:
    """One bundle of the ladder; no number of layers means the whole network."""

    reader: int | None = None
    encoder: int | None = None
    read_in: str = INT8
    """Precision of the reader."""
    ask_in: str = INT8
    """Precision of the question encoder."""

    @property
    def name(self) -> str:
        """Layers and precision of both."""
        return (
            f"reader-{self.reader or WHOLE}-{self.read_in}-"
            f"encoder-{self.encoder or WHOLE}-{self.ask_in}"
        )


def rungs(reader: int | None, encoders: Sequence[int]) -> list[LadderBundle]:
    """Returns every bundle with this reader but for the one that the whole encoder is in, in int8:
    that one has the score fitted.
    """
    small = [LadderBundle(reader, layers) for layers in encoders]
    exact = [
        LadderBundle(reader, read_in=FLOAT),
        LadderBundle(reader, ask_in=FLOAT),
        LadderBundle(reader, None, FLOAT, FLOAT),
    ]
    return [*small, *exact]


def make_rung(weights: Path, work: Workspace, target: Path, rung: LadderBundle) -> None:
    """Puts a bundle together; passages are encoded as by the whole encoder in int8."""
    encoder = work.graph("encoder", INT8)
    questions = work.graph("encoder", rung.ask_in, rung.encoder)
    about = Description(
        name=f"reader {rung.reader or WHOLE}, encoder {rung.encoder or WHOLE}",
        version="1.0.0",
        precision=rung.read_in,
        dimension=DIMENSION,
        max_answer_tokens=MAX_ANSWER_TOKENS,
        question_precision=rung.ask_in,
        provenance={"weights": PRETRAINED, "command": "winnow models ladder"},
    )
    sources = Sources(
        encoder=encoder,
        reader=work.graph("reader", rung.read_in, rung.reader),
        tokenizer=weights / "tokenizer.json",
        questions=None if questions == encoder else questions,
    )
    assemble(target, sources, about)


def share_score(source: Path, target: Path) -> None:
    """Gives a bundle the calibrated weights of another with the same reader."""
    manifest = read_manifest(source)
    amend(
        target,
        score=manifest.score.model_dump(),
        retrieval=manifest.retrieval.model_dump(),
        stopping=[entry.model_dump() for entry in manifest.stopping],
    )
