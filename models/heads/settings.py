"""How a head is trained."""

from dataclasses import dataclass
from pathlib import Path

from models.heads.rows import Fields
from winnow.heads.manifest import Kind

OUT_OF_SCOPE = "oos"
"""The label of texts that have none of the labels, as CLINC150 calls it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What decides how a head learns; the defaults are what measured best on held-out texts."""

    epochs: int = 30
    """At most."""
    patience: int = 8
    """Epochs without a better result on held-out texts, after which training ends."""
    batch: int = 64
    """Texts in a step."""
    rate: float = 3e-3
    """The highest learning rate."""
    decay: float = 0.02
    """Of weights (AdamW)."""
    dropout: float = 0.4
    smoothing: float = 0.1
    """Of the right label's probability, spread over all labels."""
    hidden: int = 160
    """Values of the hidden layer."""
    queries: int = 4
    """Weighted means of a text that a sequence head looks at."""
    held_out: float = 0.1
    """Share of the texts that stop training, calibrate and judge quantisation."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Job:
    """What is learnt, from which files."""

    kind: Kind
    data: Path
    fields: Fields
    plan: Plan
    validation: Path | None = None
    """Held-out texts; None to hold some of `data` out."""
    test: Path | None = None
    out_of_scope: str = OUT_OF_SCOPE
