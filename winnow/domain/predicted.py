"""The result of a request for predictions."""

from dataclasses import dataclass, field

from winnow.domain.prediction import Entity, LabelScore
from winnow.errors import WinnowError


@dataclass(frozen=True, slots=True)
class HeadPrediction:
    """What one head says of one text; or, in `failure`, why it says nothing."""

    head_id: str
    version: int = 0
    """Of the head; 0 if there is no prediction."""
    failure: WinnowError | None = None
    labels: tuple[LabelScore, ...] = ()
    """Best first; empty for token heads."""
    out_of_scope: bool | None = None
    """Whether no label fits; None where the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """In the order of the text, none over another; empty for sequence heads."""


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """What the heads say of one text, in the order in which they were asked for."""

    heads: tuple[HeadPrediction, ...]
    truncated: bool = False
    """Whether the text was longer than the encoder reads, and was cut."""


@dataclass(slots=True)
class PredictTimings:
    """Seconds spent in each stage by all texts together, filled in as they pass."""

    queue: float = 0.0
    tokenise: float = 0.0
    encode: float = 0.0
    heads: float = 0.0
    total: float = 0.0
    """By the clock: texts are worked on at the same time."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Everything that is said in reply to a request for predictions."""

    results: tuple[TextPrediction, ...]
    """One for each text, in the order of the request."""
    group: str
    timings: PredictTimings = field(default_factory=PredictTimings)


@dataclass(frozen=True, slots=True)
class HeadInMemory:
    """A head that is loaded."""

    head_id: str
    version: int
    bytes: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class EncoderGroupInfo:
    """An encoder group, and its heads that are in memory."""

    name: str
    fingerprint: str
    """Of the encoder, as far as heads depend on it."""
    budget_bytes: int = 0
    """Bytes that the heads in memory may take; 0 where they are elsewhere."""
    warm: tuple[HeadInMemory, ...] = ()
