"""Predictions of heads: the request, the prediction of one head, and the reply."""

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
    """The prediction of a sequence head for a whole text."""

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
    """The prediction of a token head: spans in the order of the text, without overlap."""

    spans: tuple[TokenSpan, ...]


Prediction = SequencePrediction | TokenPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of one head: either a prediction or a failure."""

    head: str
    version: int
    """Version of the head; 0 if it was not applied."""
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
    """The prediction of one head for one text, or the failure."""

    head_id: str
    version: int = 0
    """Version of the head; 0 if there is no prediction."""
    failure: WinnowError | None = None
    labels: tuple[LabelScore, ...] = ()
    """Best first; empty for token heads."""
    out_of_scope: bool | None = None
    """Whether no label fits; None where the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """In the order of the text, none over another; empty for sequence heads."""


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """The predictions of the heads for one text, in the order of the request."""

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
    """Elapsed time: texts are worked on at the same time."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """The reply to a request for predictions."""

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
