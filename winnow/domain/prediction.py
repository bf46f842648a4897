"""Predictions of heads: the request, the prediction of one head, and the reply."""

from dataclasses import dataclass, field

from winnow.errors import WinnowError


@dataclass(frozen=True, slots=True)
class LabelScore:
    """A label and its probability."""

    label: str
    score: float
    """Calibrated probability, 0 to 1."""
    assigned: bool
    """Whether the head assigns this label to the text."""


@dataclass(frozen=True, slots=True)
class SequencePrediction:
    """The prediction of a sequence head for a whole text."""

    labels: tuple[LabelScore, ...]
    """Labels, best first."""
    out_of_scope: bool | None = None
    """Whether no label fits; None if the head cannot tell."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """A span of tokens with a label."""

    label: str
    first: int
    """Index of the first token, from 0; [CLS] does not count."""
    last: int
    """Index of the token after the last one."""
    score: float
    """Calibrated probability, 0 to 1."""


@dataclass(frozen=True, slots=True)
class TokenPrediction:
    """The prediction of a token head: spans in the order of the text, without overlap."""

    spans: tuple[TokenSpan, ...]


Prediction = SequencePrediction | TokenPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of applying one head: either a prediction or a failure."""

    head: str
    version: int
    """Version of the head; 0 if the head was not applied."""
    prediction: Prediction | None = None
    failure: WinnowError | None = None
    moved_to: str = ""
    """The encoder group that serves the head now; empty unless the head was moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A labelled part of a text: `text` is exactly `source[start:end]`."""

    label: str
    text: str
    start: int
    """Start in the source text, in code points."""
    end: int
    """End in the source text, exclusive."""
    score: float
    """Calibrated probability, 0 to 1."""


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """A request to apply heads to texts; not validated."""

    text: str = ""
    """A single text; empty if `texts` is set."""
    texts: tuple[str, ...] = ()
    head_ids: tuple[str, ...] = ()
    group: str = ""
    """The encoder group that holds the heads; empty for the server's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPrediction:
    """The prediction of one head for one text, or its failure."""

    head_id: str
    version: int = 0
    """Version of the head; 0 if there is no prediction."""
    failure: WinnowError | None = None
    labels: tuple[LabelScore, ...] = ()
    """Labels, best first; empty for token heads."""
    out_of_scope: bool | None = None
    """Whether no label fits; None if the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """Entities in text order, without overlap; empty for sequence heads."""


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """The predictions of the heads for one text, in the order of the request."""

    heads: tuple[HeadPrediction, ...]
    truncated: bool = False
    """Whether the text was cut because it was longer than the encoder's limit."""


@dataclass(slots=True, kw_only=True)
class PredictTimings:
    """Seconds spent in each stage, summed over all texts; set when the stages end."""

    queue: float = 0.0
    tokenise: float = 0.0
    encode: float = 0.0
    heads: float = 0.0
    total: float = 0.0
    """Elapsed time of the request; texts are processed concurrently."""


@dataclass(frozen=True, slots=True)
class PredictionReply:
    """The reply to a request for predictions."""

    results: tuple[TextPrediction, ...]
    """A result for each text, in the order of the request."""
    group: str
    timings: PredictTimings = field(default_factory=PredictTimings)


@dataclass(frozen=True, slots=True)
class HeadInMemory:
    """A head that is held in memory, for display."""

    head_id: str
    version: int
    bytes: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class EncoderGroupInfo:
    """An encoder group, and its heads in memory."""

    name: str
    fingerprint: str
    """Identifies the encoder for heads; see `Manifest.states_fingerprint`."""
    budget_bytes: int = 0
    """Maximum bytes of the heads in memory; 0 if heads run on other servers."""
    warm: tuple[HeadInMemory, ...] = ()
    """Heads in memory."""
