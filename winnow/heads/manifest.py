"""The manifest of a head, `head.json`: its format and its rules."""

import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.checksummed_json import first_violation, open_json, parse_checksummed_json
from winnow.quoting import quoted

FORMAT = 1
FILE = "head.json"
MODEL = "head.onnx"
INPUT, OUTPUT = "states", "logits"
"""Names of the model's input and output, both float32.

The input is [tokens + 2, width]. The output is [labels] for a sequence head, and
[tokens + 2, labels] for a token head.
"""
MAX_LABELS = 10_000
_ID = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"
"""Labels of token heads: the one for tokens outside spans, and the prefixes of the others."""


class Kind(str, Enum):
    """Kind of a head: what its labels apply to."""

    SEQUENCE = "sequence"
    """The head labels whole texts."""
    TOKEN = "token"  # noqa: S105 (no secret)
    """The head labels spans of texts. Its labels are BIO: O, B-person, I-person …"""


def validate_head_id(value: str) -> str:
    """Returns `value` if it is a valid id of a head; raises ValueError otherwise."""
    if not _ID.fullmatch(value) or ".." in value:
        raise ValueError(
            f"{quoted(value)} is not a head id: use 1 to 64 characters of a-z, 0-9, dot, dash and "
            "underscore; begin and end with a letter or a digit"
        )
    return value


class _ManifestModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelEntry(_ManifestModel):
    """Checksum and size of the model file."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(gt=0)


class EncoderEntry(_ManifestModel):
    """The encoder that the head was trained on."""

    name: str
    """Name of the encoder's bundle, for display."""
    fingerprint: str
    """Identifies the encoder; see `winnow.bundle.Manifest.states_fingerprint`."""
    width: int = Field(gt=0, le=2**16)
    """Number of values of a token state."""


class TrainedOn(_ManifestModel):
    """The training data and options of a head, so that the training can be repeated."""

    data: str
    """Path or URL of the file with the labelled texts."""
    sha256: str
    rows: int = Field(gt=0)
    options: dict[str, Any] = {}
    """Options of `winnow models train-head`."""


_Label = Annotated[str, Field(max_length=200)]


class HeadManifest(_ManifestModel):
    """The content of `head.json`: what a server must know before it opens the model."""

    format: int
    id: Annotated[str, AfterValidator(validate_head_id)]
    tenant: str = Field("", max_length=200)
    version: int = Field(gt=0, le=2**31)
    kind: Kind
    labels: tuple[_Label, ...] = Field(min_length=1, max_length=MAX_LABELS)
    """Labels, in the order of the model's logits."""
    multi_label: bool = False
    """Whether a text may have several labels: every label that reaches `threshold` is assigned."""
    temperature: float = Field(1.0, ge=1e-6, le=1e6)
    """Divisor of the logits before they become probabilities (Guo et al., 2017)."""
    threshold: float | None = Field(None, ge=0, le=1)
    """Minimum probability of an assigned label. If no label reaches it, the text is out of scope.

    None if the head does not detect out-of-scope texts, and for token heads.
    """
    encoder: EncoderEntry
    model: ModelEntry
    trained_on: TrainedOn | None = None
    licences: dict[str, str] = {}
    provenance: dict[str, Any] = {}
    accuracy: dict[str, float] = {}
    """Metrics on test data, such as `accuracy` or `entity_f1`, in percent."""
    checksum: str = ""
    """Checksum of this file."""


def read_head_manifest(directory: Path) -> HeadManifest:
    """Reads `head.json`.

    Raises ArtefactError if the file is missing or invalid, its checksum does not match, or its
    format is not supported.
    """
    file = open_json(directory / FILE, "a head")
    return parse_head_manifest(file.read(file.size, 0), file.path)


def parse_head_manifest(data: bytes, path: object) -> HeadManifest:
    """Parses the content of `head.json`; `path` names it in errors.

    Raises ArtefactError if the content is invalid, its checksum does not match, or its format is
    not supported.
    """
    content = parse_checksummed_json(data, path, "; copy it again")
    if content.get("format") != FORMAT:
        other = quoted(str(content.get("format")))
        raise ArtefactError(f"{path} has format {other}; this version reads format {FORMAT}")
    try:
        manifest = HeadManifest.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{path} is not a head: {first_violation(error)}") from error
    _check_labels(manifest, path)
    return manifest


def _check_labels(manifest: HeadManifest, path: object) -> None:
    labels = manifest.labels
    if len(set(labels)) != len(labels) or not all(labels):
        raise ArtefactError(f"{path}: a label is empty or repeated")
    if manifest.kind is Kind.TOKEN:
        _check_bio_labels(manifest, path)


def _check_bio_labels(manifest: HeadManifest, path: object) -> None:
    if manifest.multi_label or manifest.threshold is not None:
        raise ArtefactError(
            f"{path}: a token head must not set threshold or multi_label: remove them"
        )
    labels = set(manifest.labels)
    if OUTSIDE not in labels or not all(map(_is_bio_label, labels)):
        raise ArtefactError(
            f"{path}: a token head must have the label O, and its other labels must begin with "
            "B- or I-"
        )
    for label in labels:
        if label.startswith(INSIDE) and BEGIN + label.removeprefix(INSIDE) not in labels:
            begin = BEGIN + label.removeprefix(INSIDE)
            raise ArtefactError(f"{path}: label {quoted(label)} needs a label {quoted(begin)}")


def _is_bio_label(label: str) -> bool:
    return label == OUTSIDE or (label.startswith((BEGIN, INSIDE)) and len(label) > len(BEGIN))
