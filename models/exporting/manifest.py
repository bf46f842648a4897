"""`bundle.json` of a bundle made from other people's checkpoints.

Knows what a manifest has to say; the bundle of our own models is `models.assemble`'s.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from models.assemble import TOKENIZER, Score, write
from models.exporting.files import CheckpointError
from models.exporting.graph import ExportedNetwork, Precision
from models.exporting.layout import Checkpoint
from models.exporting.reader import CheckpointReader
from models.exporting.sentence import Pooling, Similarity
from models.network.export import states_of
from winnow.bundle.manifest import FORMAT_FULL
from winnow.files.opened import sha256

_LEAST_POSITIONS = 128
"""A question, a title and some of a passage."""
_READER_TOKENS, _PASSAGE_TOKENS, _QUESTION_TOKENS = 320, 256, 64
_OVERLAP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Fields of a bundle that the user chooses."""

    name: str
    version: str
    licence: str
    max_answer_tokens: int
    no_answer_below: float


def encoder_entry(
    question: ExportedNetwork,
    passage: ExportedNetwork,
    dimension: int,
    pooling: Pooling,
    similarity: Similarity,
    precision: Precision,
) -> dict[str, Any]:
    """Returns the entry of both encoders."""
    return {
        "question": question.file,
        "passage": passage.file,
        "dimension": dimension,
        "pooling": pooling,
        "similarity": similarity,
        "normalised": True,
        "max_question_tokens": min(_QUESTION_TOKENS, question.checkpoint.positions),
        "max_passage_tokens": min(_PASSAGE_TOKENS, passage.checkpoint.positions),
        # DPR encodes title and text as a pair, but gives both the type 0
        # (https://github.com/huggingface/transformers/issues/26817)
        "passage_token_types": [0, 0],
        "precision": precision,
    }


def reader_entry(
    part: ExportedNetwork, network: CheckpointReader, precision: Precision, max_answer_tokens: int
) -> dict[str, Any]:
    """Returns the reader's entry."""
    most = min(_READER_TOKENS, part.checkpoint.positions)
    return {
        "file": part.file,
        "max_tokens": most,
        "window_overlap": min(_OVERLAP, most // 4),
        "token_types": list(network.token_types),
        "max_answer_tokens": max_answer_tokens,
        "precision": precision,
    }


def file_entries(directory: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns checksum and size of every file."""
    return {
        name: {"sha256": sha256(directory / name), "bytes": (directory / name).stat().st_size}
        for name in sorted(names)
    }


def require_room(checkpoint: Checkpoint) -> None:
    """Refuses a network whose sequences are too short for a question with a passage.

    Raises:
        CheckpointError: they are.

    """
    if checkpoint.positions < _LEAST_POSITIONS:
        raise CheckpointError(
            f"{checkpoint.directory} takes {checkpoint.positions} tokens, at least "
            f"{_LEAST_POSITIONS} are needed"
        )


def write_manifest(
    directory: Path,
    naming: Naming,
    parts: dict[str, ExportedNetwork],
    entries: dict[str, dict[str, Any]],
    score: Score,
) -> None:
    """Writes `bundle.json`; `entries` are those of `encoder` and `reader`."""
    encoder = entries["encoder"]
    manifest = {
        "format": FORMAT_FULL,
        "name": naming.name,
        "version": naming.version,
        "licences": {"weights": naming.licence},
        "provenance": {
            "command": "winnow models export",
            **{role: part.provenance() for role, part in parts.items()},
        },
        **entries,
        "encoder": {**encoder, "states": states_of(directory / encoder["question"])},
        "score": {**asdict(score), "no_answer_below": naming.no_answer_below},
        "tokenizer": TOKENIZER,
        "files": file_entries(directory, {*(part.file for part in parts.values()), TOKENIZER}),
        "accuracy": {},
    }
    write(directory, manifest)
