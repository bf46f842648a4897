"""Putting a bundle together: graphs, tokenizer and the manifest that vouches for them."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from models.network.export import states_of
from models.network.split_reader import PASSAGE_POSITION
from winnow.bundle import read_manifest
from winnow.bundle.manifest import FILE, FORMAT_FULL, FORMAT_SPLIT
from winnow.files.checksummed_json import to_checksummed_json
from winnow.files.opened import sha256

ENCODER, READER, TOKENIZER = "encoder.onnx", "reader.onnx", "tokenizer.json"
QUESTIONS, LOWER = "question_encoder.onnx", "reader-lower.onnx"
PASSAGE_TOKENS = 256
"""Most tokens of a passage in a split reader."""


@dataclass(frozen=True, slots=True)
class Score:
    """Weights of relevance logit, span logit and squared distance, and the least good score."""

    relevance: float = 1.0
    span: float = 0.0
    distance: float = -10.0
    no_answer_below: float = -1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Fields of the manifest beside file names."""

    name: str
    version: str
    precision: str
    """Precision of the reader."""
    dimension: int
    max_answer_tokens: int
    score: Score = Score()
    question_precision: str = "int8"
    """Precision of the question encoder, if it has a separate file."""
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files that make a bundle."""

    encoder: Path
    """Encoder of passages, in int8; of questions too, if they have no separate one."""
    reader: Path
    tokenizer: Path
    questions: Path | None = None
    lower: Path | None = None
    """Lower layers of a split reader."""


def assemble(target: Path, sources: Sources, about: Description) -> None:
    """Copies the files into `target` and writes `bundle.json`."""
    target.mkdir(parents=True, exist_ok=True)
    files = {ENCODER: sources.encoder, READER: sources.reader, TOKENIZER: sources.tokenizer}
    if sources.questions is not None:
        files[QUESTIONS] = sources.questions
    if sources.lower is not None:
        files[LOWER] = sources.lower
    for name, source in files.items():
        shutil.copyfile(source, target / name)
    plain_tokenizer(target / TOKENIZER)
    write(target, _manifest(target, about, list(files)))
    read_manifest(target)


def write(target: Path, manifest: dict[str, Any]) -> None:
    """Writes `bundle.json` with a checksum of itself, aside and renamed."""
    aside = target / f"{FILE}.partial"
    aside.write_text(to_checksummed_json(manifest), encoding="utf-8")
    aside.replace(target / FILE)


def amend(target: Path, **parts: Any) -> None:
    """Replaces top-level parts of `bundle.json`, such as `score` or `accuracy`."""
    manifest = json.loads((target / FILE).read_text(encoding="utf-8"))
    write(target, {**manifest, **parts})


def plain_tokenizer(path: Path) -> None:
    """Removes truncation and padding from a tokenizer file: the services limit lengths."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["truncation"] = content["padding"] = None
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def _manifest(target: Path, about: Description, files: Sequence[str]) -> dict[str, Any]:
    score = about.score
    own = QUESTIONS in files
    return {
        "format": FORMAT_SPLIT if LOWER in files else FORMAT_FULL,
        "name": about.name,
        "version": about.version,
        "licences": {
            "weights": "Apache-2.0 (sentence-transformers/all-MiniLM-L6-v2)",
            "training data": (
                "SQuAD 1.1 CC BY-SA 4.0; SQuADShifts CC BY 4.0; Natural Questions CC BY-SA 3.0, "
                "TriviaQA Apache-2.0 and WebQuestions CC BY 4.0 question-answer pairs as DPR used "
                "them; Wikipedia passages CC BY-SA 3.0"
            ),
        },
        "provenance": about.provenance,
        "encoder": {
            "question": QUESTIONS if own else ENCODER,
            "passage": ENCODER,
            "dimension": about.dimension,
            "pooling": "mean",
            "normalised": True,
            "max_question_tokens": 64,
            "max_passage_tokens": 256,
            "passage_token_types": [0, 0],
            "precision": "int8",
            "question_precision": about.question_precision if own else None,
            "states": states_of(target / (QUESTIONS if own else ENCODER)),
        },
        "reader": {
            "file": READER,
            "max_tokens": 320,
            "window_overlap": 64,
            "token_types": [0, 1],
            "max_answer_tokens": about.max_answer_tokens,
            "precision": about.precision,
            **({"apart": _apart(about)} if LOWER in files else {}),
        },
        "score": {
            "relevance": score.relevance,
            "span": score.span,
            "distance": score.distance,
            "no_answer_below": score.no_answer_below,
        },
        "tokenizer": TOKENIZER,
        "files": {
            name: {"sha256": sha256(target / name), "bytes": (target / name).stat().st_size}
            for name in files
        },
        "accuracy": {},
    }


def _apart(about: Description) -> dict[str, Any]:
    return {
        "lower": LOWER,
        "width": about.dimension,
        "passage_tokens": PASSAGE_TOKENS,
        "passage_position": PASSAGE_POSITION,
    }
