"""What heads say of a text."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Applied:
    """One head, applied; or why it was not. Of `prediction` and `failure` one is None."""

    head: str
    version: int
    """Of the head; 0 if it was not applied."""
    prediction: Prediction | None = None
    failure: WinnowError | None = None
    moved_to: str = ""
    """The encoder group that serves this head now, where it was moved to another encoder."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A part of a text with a label: `text` is exactly the source's [start:end]."""

    label: str
    text: str
    start: int
    """In code points."""
    end: int
    score: float
