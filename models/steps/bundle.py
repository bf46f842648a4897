"""The bundle of both trained networks."""

from pathlib import Path
from typing import Any

from models.assemble import Description, Sources, amend, assemble
from models.steps.reader import MEMBERS
from models.training import checkpoint
from models.workspace import Workspace
from winnow.bundle import read_manifest

PRETRAINED = "sentence-transformers/all-MiniLM-L6-v2"
"""The weights that everything started from."""
DIMENSION = 384
"""Of MiniLM's vectors."""
MAX_ANSWER_TOKENS = 10


def make_bundle(
    weights: Path,
    work: Workspace,
    target: Path,
    name: str,
    version: str,
    max_answer_tokens: int,
    apart: int = 0,
    encoder_of: Path | None = None,
) -> None:
    """Puts the int8 graphs together, with a first guess of the score; `apart` is the number of
    layers in which the reader takes questions and passages apart.

    The bundle `encoder_of` has the encoder already, and the reader that training went on from: what
    is known of where they come from, and the worth of words in retrieval, is taken over.
    """
    reader = work.half("upper", "int8", apart) if apart else work.graph("reader", "int8")
    lower = work.half("lower", "int8", apart) if apart else None
    tokenizer = weights / "tokenizer.json"
    sources = Sources(work.graph("encoder", "int8"), reader, tokenizer, lower=lower)
    about = Description(
        name,
        version,
        "int8",
        DIMENSION,
        max_answer_tokens,
        provenance=_provenance(work, encoder_of, apart),
    )
    retrieval = None if encoder_of is None else read_manifest(encoder_of).retrieval
    assemble(target, sources, about)
    if retrieval is not None:
        amend(target, retrieval=retrieval.model_dump())


def _provenance(work: Workspace, encoder_of: Path | None, apart: int) -> dict[str, Any]:
    readers = [path for path in work.reader_runs(MEMBERS) if path.is_file()]
    before = {} if encoder_of is None else read_manifest(encoder_of).provenance
    return before | {
        "weights": PRETRAINED,
        "command": "winnow models train-apart" if apart else "winnow models build",
        **({"encoder": _run(work.run("encoder"))} if encoder_of is None else {}),
        **({"readers": [_run(path) for path in readers]} if readers or not before else {}),
        "ranking": _run(work.run("ranking")),
        **({"apart": _apart_runs(work.apart_run(apart))} if apart else {}),
    }


def _apart_runs(last: Path) -> list[dict[str, Any]]:
    """The runs that made a reader's halves, one beginning with what the other came to."""
    runs: list[dict[str, Any]] = []
    path: Path | None = last
    while path is not None:
        run = _run(path)
        runs.insert(0, run)
        # where it lay is nobody's business
        begun = run.get("plan", {}).get("apart", {}).pop("begun", "")
        path = Path(begun) if begun else None
    return runs


def _run(path: Path) -> dict[str, Any]:
    """Nothing of a run that is not finished: its weights are not in the bundle."""
    state = checkpoint.finished(path)
    return {"steps": state["step"], "plan": state["plan"]} if state else {}
