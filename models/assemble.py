"""Assembles a bundle from graphs and a tokenizer, and writes a manifest with their checksums."""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.data import DataError
from models.network.export import find_states_output
from models.network.split_reader import PASSAGE_POSITION
from winnow.bundle import read_manifest
from winnow.bundle.manifest import FILE, FORMAT_FULL, FORMAT_SPLIT, Manifest
from winnow.files.checksummed_json import first_violation, to_checksummed_json
from winnow.files.opened import sha256

ENCODER, READER, TOKENIZER = "encoder.onnx", "reader.onnx", "tokenizer.json"
QUESTIONS, LOWER = "question_encoder.onnx", "reader-lower.onnx"
PASSAGE_TOKENS = 256
"""Longest passage of a split reader, in tokens."""
_OF_WEIGHTS = ("passages_read", "index")
"""Fields of `accuracy` that depend on the weights of retrieval and score."""


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """Weights of the final score, and the lowest score at which a span counts as an answer."""

    relevance: float = 1.0
    span: float = 0.0
    distance: float = -10.0
    no_answer_below: float = -1e9
    words: float = field(default=0.0, kw_only=True)
    hybrid: float = field(default=0.0, kw_only=True)
    """Weight of the hybrid distance; 0 for passages that are ranked without late interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleDescription:
    """Fields of the manifest that do not follow from the files."""

    name: str
    version: str
    precision: str
    """Precision of the reader."""
    dimension: int
    max_answer_tokens: int
    question_precision: str = "int8"
    """Precision of the question encoder, if it has a separate file."""
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSources:
    """Files that are copied into a bundle."""

    encoder: Path
    """Passage encoder in int8. It encodes questions, too, unless `questions` is set."""
    reader: Path
    tokenizer: Path
    questions: Path | None = None
    """Separate question encoder; None if `encoder` also encodes questions."""
    lower: Path | None = None
    """Lower layers of a split reader; None for a full cross-encoder."""


def assemble(target: Path, sources: BundleSources, description: BundleDescription) -> None:
    """Copies the files into `target` and writes `bundle.json`."""
    target.mkdir(parents=True, exist_ok=True)
    files = {ENCODER: sources.encoder, READER: sources.reader, TOKENIZER: sources.tokenizer}
    if sources.questions is not None:
        files[QUESTIONS] = sources.questions
    if sources.lower is not None:
        files[LOWER] = sources.lower
    for name, source in files.items():
        shutil.copyfile(source, target / name)
    remove_tokenizer_limits(target / TOKENIZER)
    write_manifest(target, _manifest(target, description, list(files)))
    read_manifest(target)


def partial_manifest(target: Path) -> Path:
    """Returns the file that is renamed to `bundle.json` once it is complete."""
    return target / f"{FILE}.partial"


def write_manifest(target: Path, manifest: dict[str, Any]) -> None:
    """Replaces `bundle.json` atomically. The file contains its own checksum.

    Raises:
        DataError: the content is not a manifest, for example if a weight is not a number, or it
            cannot be written. Then `bundle.json` stays as it is.

    """
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        raise DataError(f"{target / FILE} was not written: {first_violation(error)}") from error
    partial = partial_manifest(target)
    try:
        partial.write_text(to_checksummed_json(manifest), encoding="utf-8")
        partial.replace(target / FILE)
    except OSError as error:
        raise DataError(f"cannot write {partial}: {error.strerror}") from error


def amend_manifest(target: Path, **fields: Any) -> None:
    """Replaces top-level fields of `bundle.json`, such as `score` or `accuracy`."""
    manifest = json.loads((target / FILE).read_text(encoding="utf-8"))
    write_manifest(target, {**manifest, **fields})


def amend_weights(target: Path, **fields: Any) -> None:
    """Replaces weights in `bundle.json`, and removes what was measured with the earlier weights."""
    accuracy = read_manifest(target).accuracy
    kept = {name: each for name, each in accuracy.items() if name not in _OF_WEIGHTS}
    amend_manifest(target, **fields, accuracy=kept)


def file_entries(directory: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns SHA-256 and size in bytes of every file, by name."""
    return {
        name: {"sha256": sha256(directory / name), "bytes": (directory / name).stat().st_size}
        for name in names
    }


def remove_tokenizer_limits(path: Path) -> None:
    """Removes truncation and padding from a tokenizer file, because the services limit lengths."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["truncation"] = content["padding"] = None
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def _manifest(target: Path, description: BundleDescription, files: Sequence[str]) -> dict[str, Any]:
    question_encoder = QUESTIONS if QUESTIONS in files else ENCODER
    return {
        "format": FORMAT_SPLIT if LOWER in files else FORMAT_FULL,
        "name": description.name,
        "version": description.version,
        "licences": {
            "weights": "Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2)",
            "training data": (
                "SQuAD 1.1 CC BY-SA 4.0; SQuADShifts CC BY 4.0; Natural Questions CC BY-SA 3.0, "
                "TriviaQA Apache-2.0 and WebQuestions CC BY 4.0 question-answer pairs as DPR used "
                "them; Wikipedia passages CC BY-SA 3.0"
            ),
        },
        "provenance": description.provenance,
        "encoder": {
            "question": question_encoder,
            "passage": ENCODER,
            "dimension": description.dimension,
            "pooling": "mean",
            "normalised": True,
            "max_question_tokens": 64,
            "max_passage_tokens": 256,
            "passage_token_types": [0, 0],
            "precision": "int8",
            "question_precision": description.question_precision if QUESTIONS in files else None,
            "states": find_states_output(target / question_encoder),
        },
        "reader": {
            "file": READER,
            "max_tokens": 320,
            "window_overlap": 64,
            "token_types": [0, 1],
            "max_answer_tokens": description.max_answer_tokens,
            "precision": description.precision,
            **({"apart": _split_entry(description)} if LOWER in files else {}),
        },
        "score": asdict(ScoreWeights()),
        "tokenizer": TOKENIZER,
        "files": file_entries(target, files),
        "accuracy": {},
    }


def _split_entry(description: BundleDescription) -> dict[str, Any]:
    """Returns the manifest entry of a split reader's lower layers."""
    return {
        "lower": LOWER,
        "width": description.dimension,
        "passage_tokens": PASSAGE_TOKENS,
        "passage_position": PASSAGE_POSITION,
    }
