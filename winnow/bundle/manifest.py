"""The manifest of a bundle, `bundle.json`: its format and its rules."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.domain.calibration import AnswerCalibration
from winnow.domain.confidence import Confidence
from winnow.domain.stopping import StoppingRule
from winnow.domain.text_relevance import FALLBACK, TextRelevance
from winnow.domain.threshold import AnswerThreshold
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    check_checksum,
    first_violation,
    open_json,
    read_json_object,
)
from winnow.late_interaction.levels import MAX_VALUES

FORMAT_FULL, FORMAT_SPLIT, FORMAT_LATE = 1, 2, 3
"""Format versions of bundles with a full cross-encoder, with a split reader, and with late
interaction and any reader.

Older releases read only the former ones.
"""
FORMATS = (FORMAT_FULL, FORMAT_SPLIT, FORMAT_LATE)
FILE = "bundle.json"
_HEADS_ONLY = {"states"}
"""Encoder fields that affect only heads."""
_QUESTION_ONLY = {"question", "max_question_tokens", "question_precision"} | _HEADS_ONLY
"""Encoder fields that do not affect passage vectors."""
_LIMIT = 2**16
"""Maximum number of tokens or dimensions; every supported model has fewer."""
_TokenType = Annotated[int, Field(ge=0, le=_LIMIT)]


class _ManifestModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class BundleFile(_ManifestModel):
    """Checksum and size of a file."""

    sha256: str
    bytes: int = Field(ge=0)


class BundleEncoder(_ManifestModel):
    """The sentence encoders. `question` and `passage` may name the same file.

    The question encoder may differ in size or precision, if both encode into the same vector space.
    Fields of the question encoder do not affect the encoding of an index.
    """

    question: str
    passage: str
    dimension: int = Field(gt=0, le=_LIMIT)
    max_question_tokens: int = Field(gt=2, le=_LIMIT)
    max_passage_tokens: int = Field(gt=3, le=_LIMIT)
    passage_token_types: tuple[_TokenType, _TokenType]
    precision: str
    question_precision: str | None = None
    """Precision of the question encoder; None means `precision`."""
    states: str = ""
    """Name of the tensor in the question encoder's graph that holds the token states for heads,
    [1, tokens, width]; empty if the bundle supports no heads. Does not affect vectors or answers.
    """

    @property
    def effective_question_precision(self) -> str:
        """The precision of the question encoder."""
        return self.question_precision or self.precision


class SplitReaderEntry(_ManifestModel):
    """The lower layers of a split reader, which process question and passage separately."""

    lower: str
    """File with the lower layers; `ReaderEntry.file` then has only the upper layers."""
    width: int = Field(gt=0, le=_LIMIT)
    """Number of values of a token state."""
    passage_tokens: int = Field(gt=34, le=_LIMIT)
    """Maximum number of tokens of a passage, with its title and special tokens.

    Longer passages are read in windows. Titles have at most 32 tokens, so with two special tokens
    at least one token of text fits.
    """
    passage_position: int = Field(gt=2, le=_LIMIT)
    """Position of a passage's first token; it does not depend on the question's length."""


class ReaderEntry(_ManifestModel):
    """The reader, and the limits of its inputs and answers in tokens."""

    file: str
    max_tokens: int = Field(gt=16, le=_LIMIT)
    window_overlap: int = Field(ge=0)
    token_types: tuple[_TokenType, _TokenType]
    max_answer_tokens: int = Field(gt=0, le=_LIMIT)
    precision: str
    apart: SplitReaderEntry | None = None
    """The lower layers of a split reader; None for a full cross-encoder."""

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if self.apart is None else (self.apart.lower, self.file)


class ConfidenceEntry(_ManifestModel):
    """Coefficients of the confidence of an answer; see `winnow.domain.confidence`."""

    relevance: float
    span: float
    distance: float
    bias: float


class ScoreEntry(_ManifestModel):
    """Weights of the final score, and the score that an answer must reach."""

    relevance: float
    span: float
    distance: float
    words: float | None = None
    """None in bundles whose score does not depend on words."""
    hybrid: float | None = None
    """Weight of the hybrid distance, in scores of passages that are ranked by late interaction."""
    no_answer_below: float
    """Minimum score of an answer; if the best candidate scores less, there is no answer."""
    min_confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """Minimum confidence of an answer. If it is set, it replaces the minimum score."""
    confidence: ConfidenceEntry | None = None
    """None in bundles of older versions."""
    sentence_confidence: ConfidenceEntry | None = None
    """Coefficients of the confidence of an answer's sentence; None if it was not fitted."""


class RetrievalEntry(_ManifestModel):
    """Weights of hybrid retrieval."""

    words: float = Field(ge=0)
    """Squared distance that equals one unit of BM25; 0 if it was not fitted."""


class TextRelevanceEntry(_ManifestModel):
    """Weights of the relevance of texts that callers send; see `winnow.domain.text_relevance`."""

    logit: float = Field(ge=0)
    words: float = Field(ge=0)
    bias: float


class LateInteractionEntry(_ManifestModel):
    """Late interaction: how token vectors are computed, and the weights of the ranking by them.

    They apply only to an index whose passages have token vectors.
    """

    file: str
    """ONNX nodes that follow the encoder's nodes; see `winnow.late_interaction.extension`."""
    values: int = Field(gt=0, le=MAX_VALUES)
    """Number of values of a token vector."""
    words: float = Field(ge=0)
    """Squared distance that equals one unit of BM25."""
    tokens: float = Field(ge=0)
    """Squared distance that equals one unit of the score of late interaction."""
    score: ScoreEntry | None = None
    """Weights of the score of passages that are ranked by late interaction; None if it is not
    fitted, and is as without.
    """
    stopping: tuple["StoppingEntry", ...] = ()
    """Rules of early stopping in the order by late interaction; without any, all passages are read.
    """


class StoppingEntry(_ManifestModel):
    """A calibrated early-stopping rule; `winnow.domain.stopping.StoppingRule` has the fields."""

    max_loss: float = Field(gt=0)
    """Maximum loss of accuracy on the training questions, in points of exact match."""
    nearness: float = Field(ge=0)
    gap: float = Field(ge=0)
    bar: float
    first_look: int = Field(2, ge=1)


class Manifest(_ManifestModel):
    """The content of `bundle.json`: what a service must know before it opens a model."""

    format: int
    name: str
    version: str
    encoder: BundleEncoder
    reader: ReaderEntry
    score: ScoreEntry
    retrieval: RetrievalEntry = RetrievalEntry(words=0)
    stopping: tuple[StoppingEntry, ...] = ()
    late_interaction: LateInteractionEntry | None = None
    """None for a bundle without late interaction."""
    text_relevance: TextRelevanceEntry | None = None
    """None in bundles of older versions, and if it was not fitted.

    It is not a part of the fingerprint: no answer of an index depends on it.
    """
    tokenizer: str
    files: dict[str, BundleFile]
    licences: dict[str, str] = {}
    provenance: dict[str, Any] = {}
    accuracy: dict[str, Any] = {}
    languages: tuple[str, ...] = ("en",)
    """ISO 639-1 codes of the languages that the models read."""
    untrained: bool = False
    """Whether the reader's weights are random: such a bundle is useful only for benchmarks."""

    @property
    def encoding_fingerprint(self) -> str:
        """Identifies how passages are encoded. Vectors with different values are not comparable."""
        return _digest(
            self.files[self.encoder.passage].sha256,
            self.files[self.tokenizer].sha256,
            self.encoder.model_dump_json(exclude=_QUESTION_ONLY),
        )

    @property
    def states_fingerprint(self) -> str:
        """Identifies how texts become token states. Heads need the encoder they were trained on."""
        return _digest(
            self.files[self.encoder.question].sha256,
            self.files[self.tokenizer].sha256,
            self.encoder.effective_question_precision,
            self.encoder.states,
        )

    @property
    def lower_layers_fingerprint(self) -> str:
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
    def token_vectors_fingerprint(self) -> str:
        """Identifies how passages become token vectors; empty without late interaction."""
        late = self.late_interaction
        if late is None:
            return ""
        return _digest(self.encoding_fingerprint, self.files[late.file].sha256, str(late.values))

    @property
    def fingerprint(self) -> str:
        """Identifies everything in the bundle that affects an answer: encoders, retrieval weights,
        reader, score, early stopping and late interaction.
        """
        late = self.late_interaction
        # the minimum confidence changes neither answers nor scores; fingerprints of bundles without
        # late interaction include it, because those of older versions do
        left_out = {"min_confidence"} if late else set[str]()
        return _digest(
            self.encoding_fingerprint,
            self.encoder.model_dump_json(exclude=_HEADS_ONLY),
            self.files[self.encoder.question].sha256,
            *(self.files[name].sha256 for name in self.reader.files),
            self.reader.model_dump_json(exclude_none=True),  # stable without a split reader
            # stable without a confidence
            self.score.model_dump_json(exclude_none=True, exclude=left_out),
            self.retrieval.model_dump_json(),
            *(entry.model_dump_json() for entry in self.stopping),
            *((self.token_vectors_fingerprint, _without_minimum(late)) if late else ()),
        )

    @property
    def confidence(self) -> Confidence | None:
        """The model of an answer's confidence; None if it was not fitted."""
        return _to_confidence(self.score.confidence)

    @property
    def effective_text_relevance(self) -> TextRelevance:
        """How relevant texts of callers are, by the bundle's weights or else by `FALLBACK`."""
        entry = self.text_relevance
        return FALLBACK if entry is None else TextRelevance(**entry.model_dump())

    def answer_calibration(self, late_interaction: bool = False) -> AnswerCalibration:
        """Returns how answers are judged.

        `late_interaction`: whether their passages are ranked by late interaction.
        """
        late = self.late_interaction if late_interaction else None
        score = late.score if late and late.score else self.score
        return AnswerCalibration(
            threshold=AnswerThreshold(score.no_answer_below, score.min_confidence),
            confidence=_to_confidence(score.confidence),
            sentence_confidence=_to_confidence(score.sentence_confidence),
        )

    def stopping_rule(self, max_loss: float, late_interaction: bool = False) -> StoppingRule | None:
        """Returns the rule with the largest loss of at most `max_loss`; None if there is none.

        `late_interaction`: whether the passages are ranked by late interaction.
        """
        late = self.late_interaction if late_interaction else None
        entries = late.stopping if late else self.stopping
        allowed = [entry for entry in entries if entry.max_loss <= max_loss]
        if not allowed:
            return None
        entry = max(allowed, key=lambda entry: entry.max_loss)
        return StoppingRule(entry.nearness, entry.gap, entry.bar, entry.first_look)


def read_manifest(directory: Path) -> Manifest:
    """Reads `bundle.json`, and verifies its checksum if it has one. Older manifests have none.

    Raises ArtefactError if the file is missing or invalid, its checksum does not match, or its
    format is not supported.
    """
    path = directory / FILE
    text, content = read_json_object(open_json(path, "a bundle"))
    if CHECKSUM_FIELD in content:
        own = f"remove the field {CHECKSUM_FIELD} if you edited the file yourself"
        check_checksum(text, content, path, f"; copy it again, or {own}")
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{path} is not a bundle manifest: {first_violation(error)}") from error
    if manifest.format not in FORMATS:
        raise ArtefactError(
            f"{path} has format {manifest.format}; this version reads formats "
            f"{FORMAT_FULL} to {FORMAT_LATE}"
        )
    _check_names(manifest, path)
    return manifest


def _to_confidence(entry: ConfidenceEntry | None) -> Confidence | None:
    return None if entry is None else Confidence(**entry.model_dump())


def _without_minimum(late: LateInteractionEntry) -> str:
    return late.model_dump_json(exclude={"score": {"min_confidence"}})


def _check_names(manifest: Manifest, path: Path) -> None:
    encoder, reader, late = manifest.encoder, manifest.reader, manifest.late_interaction
    late_files = (late.file,) if late else ()
    for name in (
        *(encoder.question, encoder.passage, *reader.files),
        *(manifest.tokenizer, *late_files),
    ):
        if name not in manifest.files:
            raise ArtefactError(f"{path} names {name}, but its `files` has no checksum of {name}")
    for name in manifest.files:
        if Path(name).name != name:
            raise ArtefactError(f"{path} names {name}: files must be in the bundle's directory")
    if reader.window_overlap >= reader.max_tokens // 2:
        raise ArtefactError(f"{path}: window_overlap must be below half of max_tokens")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
