"""The ladder: bundles of every combination of whole and smaller networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.assemble import Description, Sources, amend, assemble
from models.steps.bundle import DIMENSION, MAX_ANSWER_TOKENS, PRETRAINED
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.inference.runtime import FLOAT, INT8

READERS = (4, 3, 2, 1)
"""Layers of the reader's students."""
ENCODERS = (3, 2)
"""Layers of the question encoder's students."""
WHOLE = 6
"""Layers of MiniLM."""


@dataclass(frozen=True, slots=True)
class Rung:
    """What a bundle of the ladder holds; no number of layers means the whole network."""

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


def rungs(reader: int | None, encoders: Sequence[int]) -> list[Rung]:
    """Every bundle with this reader but for the one that the whole encoder is in, in int8: that
    one has the score fitted.
    """
    small = [Rung(reader, layers) for layers in encoders]
    exact = [
        Rung(reader, read_in=FLOAT),
        Rung(reader, ask_in=FLOAT),
        Rung(reader, None, FLOAT, FLOAT),
    ]
    return [*small, *exact]


def make_rung(weights: Path, work: Workspace, target: Path, rung: Rung) -> None:
    """Puts a bundle together; passages are encoded as by the whole encoder in int8."""
    encoder = work.graph("encoder", INT8)
    questions = work.graph("encoder", rung.ask_in, rung.encoder)
    about = Description(
        f"reader {rung.reader or WHOLE}, encoder {rung.encoder or WHOLE}",
        "1.0.0",
        rung.read_in,
        DIMENSION,
        MAX_ANSWER_TOKENS,
        question_precision=rung.ask_in,
        provenance={"weights": PRETRAINED, "command": "winnow models ladder"},
    )
    sources = Sources(
        encoder,
        work.graph("reader", rung.read_in, rung.reader),
        weights / "tokenizer.json",
        None if questions == encoder else questions,
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
