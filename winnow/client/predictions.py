"""What comes back for texts that heads are applied to, as plain values.

Scores and offsets mean what `winnow/v1/head.proto` says of them.
"""

from dataclasses import asdict, dataclass
from typing import Any

from winnow.client.plain import plain
from winnow.domain.prediction import Entity, LabelScore


@dataclass(frozen=True, slots=True)
class HeadPrediction:
    """What one head says of a text."""

    head_id: str
    version: int = 0
    """Of the head; 0 if there is no prediction."""
    failure: str = ""
    """Why there is no prediction; empty if there is one."""
    labels: tuple[LabelScore, ...] = ()
    """Best first; empty for heads that find entities."""
    out_of_scope: bool | None = None
    """Whether no label fits; None where the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """In the order of the text; `entity.text == text[entity.start:entity.end]`, always."""

    @property
    def label(self) -> str | None:
        """The best label that the text is given, or None if it is given none."""
        return next((each.label for each in self.labels if each.assigned), None)


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """A text, and what each head says of it, in the order in which they were asked for."""

    text: str
    heads: tuple[HeadPrediction, ...]
    truncated: bool = False
    """The text was longer than the encoder reads, and was cut."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: scores that are not finite become None."""
        return dict(plain(asdict(self)))


@dataclass(frozen=True, slots=True)
class PredictTimings:
    """Milliseconds spent in each stage by all texts together, as the front node measured them."""

    queue_ms: float = 0.0
    tokenise_ms: float = 0.0
    encode_ms: float = 0.0
    heads_ms: float = 0.0
    total_ms: float = 0.0
    """By the clock: texts are worked on at the same time."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """Everything that is said of one text or several."""

    results: tuple[TextPrediction, ...]
    """One for each text, in the order in which they were given."""
    ring: str
    """The ring that was asked."""
    timings: PredictTimings
    request_id: str
    """Also in the logs of every process that worked on the texts."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: figures that are not finite become None."""
        return dict(plain(asdict(self)))
