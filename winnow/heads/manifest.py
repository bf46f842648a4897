"""The manifest of a head: `head.json`.

Knows the format and its rules; opens no model.
"""

import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.vouching import first_fault, open_object, vouched_object
from winnow.quoting import quoted

FORMAT = 1
FILE = "head.json"
MODEL = "head.onnx"
INPUT, OUTPUT = "states", "logits"
"""Of the model: states float32 [tokens + 2, width] to logits float32, [labels] of a sequence head
and [tokens + 2, labels] of a token head."""
MOST_LABELS = 10_000
_ID = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"
"""How labels of token heads begin; O is a whole one."""


class Kind(str, Enum):
    """What a head labels."""

    SEQUENCE = "sequence"
    """Whole texts."""
    TOKEN = "token"  # noqa: S105 (no secret)
    """Parts of texts. Labels are BIO: O, B-person, I-person …"""


def head_id(value: str) -> str:
    """`value`, if it can be the id of a head; raises ValueError that says what is wrong."""
    if not _ID.fullmatch(value) or ".." in value:
        raise ValueError(
            f"{quoted(value)} is no head id: use 1 to 64 of a-z, 0-9, dot, dash and underscore; "
            "begin and end with a letter or a digit"
        )
    return value


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelEntry(_Part):
    """What the model's file must be."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(gt=0)


class EncoderEntry(_Part):
    """The encoder that the head was trained on."""

    name: str
    """Of its bundle, for people."""
    fingerprint: str
    """`winnow.bundle.Manifest.states_fingerprint`; another encoder's states mean other things."""
    width: int = Field(gt=0, le=2**16)


class TrainedOn(_Part):
    """The labelled texts that the head was trained on, so that it can be trained again."""

    data: str
    """A path or URL of the file."""
    sha256: str
    rows: int = Field(gt=0)
    options: dict[str, Any] = {}
    """Those of the training, as `winnow models train-head` takes them."""


_Label = Annotated[str, Field(max_length=200)]


class HeadManifest(_Part):
    """Everything a server has to know of a head before it opens the model."""

    format: int
    id: Annotated[str, AfterValidator(head_id)]
    tenant: str = Field("", max_length=200)
    version: int = Field(gt=0, le=2**31)
    kind: Kind
    labels: tuple[_Label, ...] = Field(min_length=1, max_length=MOST_LABELS)
    """In the order of the model's logits."""
    multi_label: bool = False
    """Whether a text may have several labels: each is assigned from `threshold` upwards."""
    temperature: float = Field(1.0, ge=1e-6, le=1e6)
    """Logits are divided by it before they become probabilities (Guo et al., 2017)."""
    threshold: float | None = Field(None, ge=0, le=1)
    """The least probability of a label that is assigned; below it a text is out of scope. None if
    the head cannot tell. Token heads have none.
    """
    encoder: EncoderEntry
    model: ModelEntry
    trained_on: TrainedOn | None = None
    licences: dict[str, str] = {}
    provenance: dict[str, Any] = {}
    accuracy: dict[str, float] = {}
    """Measured on test data, by name, such as `accuracy` or `entity_f1`, in percent."""
    checksum: str = ""
    """Of this file."""


def read_head_manifest(directory: Path) -> HeadManifest:
    """Reads `head.json`.

    Raises:
        ArtefactError: it is missing, not JSON, altered, of another format, or breaks a rule.

    """
    file = open_object(directory / FILE, "a head")
    return parsed_head_manifest(file.read(file.size, 0), file.path)


def parsed_head_manifest(data: bytes, path: object) -> HeadManifest:
    """The manifest in a file; `path` names it.

    Raises:
        ArtefactError: it is not JSON, altered, of another format, or breaks a rule.

    """
    content = vouched_object(data, path, "; copy it again")
    if content.get("format") != FORMAT:
        found = quoted(str(content.get("format")))
        raise ArtefactError(f"{path} has format {found}; this version reads {FORMAT}")
    try:
        manifest = HeadManifest.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{path} is not a head: {first_fault(error)}") from error
    _check_labels(manifest, path)
    return manifest


def _check_labels(manifest: HeadManifest, path: object) -> None:
    labels = manifest.labels
    if len(set(labels)) != len(labels) or not all(labels):
        raise ArtefactError(f"{path}: a label is empty, or is there twice")
    if manifest.kind is Kind.TOKEN:
        _check_parts(manifest, path)


def _check_parts(manifest: HeadManifest, path: object) -> None:
    if manifest.multi_label or manifest.threshold is not None:
        raise ArtefactError(f"{path}: a token head has neither a threshold nor multi_label")
    labels = set(manifest.labels)
    if OUTSIDE not in labels or not all(map(_labels_parts, labels)):
        raise ArtefactError(f"{path}: labels of a token head are O, B-… and I-…")
    for label in labels:
        if label.startswith(INSIDE) and BEGIN + label.removeprefix(INSIDE) not in labels:
            raise ArtefactError(f"{path}: {quoted(label)} has no B-… that it goes on from")


def _labels_parts(label: str) -> bool:
    return label == OUTSIDE or (label.startswith((BEGIN, INSIDE)) and len(label) > len(BEGIN))
