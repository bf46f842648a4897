"""The manifest of a bundle: `bundle.json`.

Knows the format and its rules; does not open models.
"""

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.domain.confidence import Confidence
from winnow.domain.stopping import StoppingRule
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    first_violation,
    has_valid_checksum,
    open_json,
    read_json_object,
)

WHOLE, HALVES = 1, 2
"""Formats: of readers in one file, which older versions read, too; and of those in two."""
FILE = "bundle.json"


_HEADS_ONLY = {"states"}
_QUESTION_ONLY = {"question", "max_question_tokens", "question_precision"} | _HEADS_ONLY


_MOST = 2**16
"""More tokens or dimensions than any model here has."""
_TokenType = Annotated[int, Field(ge=0, le=_MOST)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class BundleFile(_Part):
    """The expected content of a file."""

    sha256: str
    bytes: int = Field(ge=0)


class BundleEncoder(_Part):
    """The sentence encoders. `question` and `passage` may name the same file.

    The question encoder may be a smaller or more precise one of the same vector space; what
    concerns it alone does not change how an index is encoded.
    """

    question: str
    passage: str
    dimension: int = Field(gt=0, le=_MOST)
    max_question_tokens: int = Field(gt=2, le=_MOST)
    max_passage_tokens: int = Field(gt=3, le=_MOST)
    passage_token_types: tuple[_TokenType, _TokenType]
    precision: str
    question_precision: str | None = None
    """Precision of the question encoder, where it differs."""
    states: str = ""
    """The value inside the question encoder that holds the hidden states [1, tokens, width] that
    heads are given; empty if there are none. Neither vectors nor answers depend on it.
    """

    @property
    def asked_in(self) -> str:
        """The precision of the question encoder."""
        return self.question_precision or self.precision


class ApartEntry(_Part):
    """The lower layers of a split reader, which see question and passage apart."""

    lower: str
    """Their file; that of the reader holds the upper layers alone."""
    width: int = Field(gt=0, le=_MOST)
    """Values of a token's state."""
    passage_tokens: int = Field(gt=34, le=_MOST)
    """Most tokens of a passage's half: longer passages are read in windows. There is room for some
    of the passage beside the longest title and two special tokens.
    """
    passage_position: int = Field(gt=2, le=_MOST)
    """Where a passage begins, wherever its question ends."""


class ReaderEntry(_Part):
    """The reader and how long its inputs and answers may be, in tokens."""

    file: str
    max_tokens: int = Field(gt=16, le=_MOST)
    window_overlap: int = Field(ge=0)
    token_types: tuple[_TokenType, _TokenType]
    max_answer_tokens: int = Field(gt=0, le=_MOST)
    precision: str
    apart: ApartEntry | None = None

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if self.apart is None else (self.apart.lower, self.file)


class ConfidenceEntry(_Part):
    """How likely an answer is right; see `winnow.domain.confidence`."""

    relevance: float
    span: float
    distance: float
    bias: float


class ScoreEntry(_Part):
    """Weights of the final score, and the score under which an answer is not shown as one."""

    relevance: float
    span: float
    distance: float
    no_answer_below: float
    confidence: ConfidenceEntry | None = None
    """None in older bundles."""


class RetrievalEntry(_Part):
    """What a hybrid retriever weighs."""

    words: float = Field(ge=0)
    """Squared distance that one unit of BM25 is worth; 0 where that was not fitted."""


class StoppingEntry(_Part):
    """A calibrated rule for reading fewer passages; see `winnow.domain.stopping`."""

    max_loss: float = Field(gt=0)
    """Most accuracy that the rule lost on training questions, in points of exact match."""
    nearness: float = Field(ge=0)
    gap: float = Field(ge=0)
    bar: float
    first_look: int = Field(2, ge=1)


class Manifest(_Part):
    """Everything that a service must know of a bundle before it opens a model."""

    format: int
    name: str
    version: str
    encoder: BundleEncoder
    reader: ReaderEntry
    score: ScoreEntry
    retrieval: RetrievalEntry = RetrievalEntry(words=0)
    stopping: tuple[StoppingEntry, ...] = ()
    tokenizer: str
    files: dict[str, BundleFile]
    licences: dict[str, str] = {}
    provenance: dict[str, Any] = {}
    accuracy: dict[str, Any] = {}
    untrained: bool = False
    """Whether the reader's weights are random: it is there to be timed, and has no accuracy."""

    @property
    def encoding_fingerprint(self) -> str:
        """Identifies how passages are encoded: vectors are comparable only where it is equal."""
        return _digest(
            self.files[self.encoder.passage].sha256,
            self.files[self.tokenizer].sha256,
            self.encoder.model_dump_json(exclude=_QUESTION_ONLY),
        )

    @property
    def states_fingerprint(self) -> str:
        """Identifies how texts become token states: heads fit one encoder only."""
        return _digest(
            self.files[self.encoder.question].sha256,
            self.files[self.tokenizer].sha256,
            self.encoder.asked_in,
            self.encoder.states,
        )

    @property
    def lower_fingerprint(self) -> str:
        """Identifies the lower layers of a split reader; empty for a full cross-encoder."""
        apart = self.reader.apart
        if apart is None:
            return ""
        return _digest(
            self.files[apart.lower].sha256,
            self.files[self.tokenizer].sha256,
            self.reader.model_dump_json(include={"apart", "token_types", "window_overlap"}),
        )

    @property
    def fingerprint(self) -> str:
        """Identifies everything that an answer depends on: encoding, retrieval, reader, score,
        stopping.
        """
        return _digest(
            self.encoding_fingerprint,
            self.encoder.model_dump_json(exclude=_HEADS_ONLY),
            self.files[self.encoder.question].sha256,
            *(self.files[name].sha256 for name in self.reader.files),
            self.reader.model_dump_json(exclude_none=True),  # as before there were halves
            self.score.model_dump_json(exclude_none=True),  # as before there was a confidence
            self.retrieval.model_dump_json(),
            *(entry.model_dump_json() for entry in self.stopping),
        )

    @property
    def confidence(self) -> Confidence | None:
        """The estimate of how likely an answer is right; None if it was not fitted."""
        entry = self.score.confidence
        return None if entry is None else Confidence(**entry.model_dump())

    def stopping_rule(self, max_loss: float) -> StoppingRule | None:
        """The rule with the largest loss that is at most `max_loss`; None if there is none."""
        allowed = [entry for entry in self.stopping if entry.max_loss <= max_loss]
        if not allowed:
            return None
        entry = max(allowed, key=lambda entry: entry.max_loss)
        return StoppingRule(entry.nearness, entry.gap, entry.bar, entry.first_look)


def read_manifest(directory: Path) -> Manifest:
    """Reads `bundle.json`. Where it has no checksum of itself, as older ones, that is not checked.
    Raises ArtefactError if it is missing, not JSON, altered, of another format, or breaks a rule.
    """
    path = directory / FILE
    text, content = read_json_object(open_json(path, "a bundle"))
    if CHECKSUM_FIELD in content and not has_valid_checksum(text, content):
        raise ArtefactError(
            f"{path} is damaged: it is not as it was written; copy it again, or take out its "
            f"{CHECKSUM_FIELD} if you altered it yourself"
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{path} is not a bundle manifest: {first_violation(error)}") from error
    if manifest.format not in (WHOLE, HALVES):
        raise ArtefactError(
            f"{path} has format {manifest.format}; this version reads {WHOLE} and {HALVES}"
        )
    _check_names(manifest, path)
    return manifest


def _check_names(manifest: Manifest, path: Path) -> None:
    encoder, reader = manifest.encoder, manifest.reader
    for name in (encoder.question, encoder.passage, *reader.files, manifest.tokenizer):
        if name not in manifest.files:
            raise ArtefactError(f"{path} names {name} but gives no checksum for it under files")
    for name in manifest.files:
        if Path(name).name != name:
            raise ArtefactError(f"{path} names {name}: files must lie in the bundle itself")
    if reader.window_overlap >= reader.max_tokens // 2:
        raise ArtefactError(f"{path}: window_overlap must be below half of max_tokens")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
