"""Predictions of heads: the request, what one head predicts, and the reply."""

from dataclasses import dataclass, field

from winnow.errors import WinnowError


@dataclass(frozen=True, slots=True)
class LabelScore:
    """A label and how probable it is."""

    label: str
    score: float
    """Calibrated, 0 to 1."""
    assigned: bool
    """Whether the head gives the text this label."""


@dataclass(frozen=True, slots=True)
class SequencePrediction:
    """What a sequence head says of a whole text."""

    labels: tuple[LabelScore, ...]
    """Best first."""
    out_of_scope: bool | None = None
    """Whether no label fits; None where the head cannot tell."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens with a label."""

    label: str
    first: int
    """From 0; [CLS] does not count."""
    last: int
    """One past the last."""
    score: float
    """Calibrated, 0 to 1."""


@dataclass(frozen=True, slots=True)
class TokenPrediction:
    """What a token head says of a text: spans in the order of the text, none over another."""

    spans: tuple[TokenSpan, ...]


Prediction = SequencePrediction | TokenPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One head, applied; or why it was not. Of `prediction` and `failure` one is None."""

    head: str
    version: int
    """Of the head; 0 if it was not applied."""
    prediction: Prediction | None = None
    failure: WinnowError | None = None
    moved_to: str = ""
    """The encoder group that serves this head now, where it was moved to another encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A part of a text with a label: `text` is exactly the source's [start:end]."""

    label: str
    text: str
    start: int
    """In code points."""
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """Texts, and the heads to apply to each; not validated."""

    text: str = ""
    """One text; empty where `texts` are given."""
    texts: tuple[str, ...] = ()
    head_ids: tuple[str, ...] = ()
    group: str = ""
    """The encoder group that holds the heads; empty for the server's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(slots=True, kw_only=True)
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
