"""Writes `bundle.json` of a bundle made from third-party checkpoints."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from models.assemble import TOKENIZER, ScoreWeights, file_entries, write_manifest
from models.exporting.files import CheckpointError
from models.exporting.graph import ExportedNetwork, Precision
from models.exporting.layout import Checkpoint
from models.exporting.reader import CheckpointReader
from models.exporting.sentence import Pooling, Similarity
from models.network.export import find_states_output
from winnow.bundle.manifest import FORMAT_FULL

_MIN_TOKENS = 128
"""Tokens that a question, a title and a short passage need together."""
_READER_TOKENS, _PASSAGE_TOKENS, _QUESTION_TOKENS = 320, 256, 64
_OVERLAP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportNaming:
    """Manifest fields that the user chooses."""

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
    """Returns the manifest entry of both encoders."""
    return {
        "question": question.file,
        "passage": passage.file,
        "dimension": dimension,
        "pooling": pooling,
        "similarity": similarity,
        "normalised": True,
        "max_question_tokens": min(_QUESTION_TOKENS, question.checkpoint.max_tokens),
        "max_passage_tokens": min(_PASSAGE_TOKENS, passage.checkpoint.max_tokens),
        # DPR encodes title and text as a pair, but gives both the type 0
        # (https://github.com/huggingface/transformers/issues/26817)
        "passage_token_types": [0, 0],
        "precision": precision,
    }


def reader_entry(
    exported: ExportedNetwork,
    network: CheckpointReader,
    precision: Precision,
    max_answer_tokens: int,
) -> dict[str, Any]:
    """Returns the manifest entry of the reader."""
    max_tokens = min(_READER_TOKENS, exported.checkpoint.max_tokens)
    return {
        "file": exported.file,
        "max_tokens": max_tokens,
        "window_overlap": min(_OVERLAP, max_tokens // 4),
        "token_types": list(network.token_types),
        "max_answer_tokens": max_answer_tokens,
        "precision": precision,
    }


def require_sequence_length(checkpoint: Checkpoint) -> None:
    """Checks that the network's sequences are long enough for a question with a passage.

    Raises:
        CheckpointError: the sequences of the network are too short.

    """
    if checkpoint.max_tokens < _MIN_TOKENS:
        raise CheckpointError(
            f"{checkpoint.directory} takes {checkpoint.max_tokens} tokens, but at least "
            f"{_MIN_TOKENS} are needed"
        )


def write_exported_manifest(
    directory: Path,
    naming: ExportNaming,
    exported: dict[str, ExportedNetwork],
    entries: dict[str, dict[str, Any]],
    score: ScoreWeights,
) -> None:
    """Writes `bundle.json`. `entries` are the manifest entries `encoder` and `reader`."""
    encoder = entries["encoder"]
    manifest = {
        "format": FORMAT_FULL,
        "name": naming.name,
        "version": naming.version,
        "licences": {"weights": naming.licence},
        "provenance": {
            "command": "winnow models export",
            **{role: network.provenance() for role, network in exported.items()},
        },
        **entries,
        "encoder": {**encoder, "states": find_states_output(directory / encoder["question"])},
        "score": {**asdict(score), "no_answer_below": naming.no_answer_below},
        "tokenizer": TOKENIZER,
        "files": file_entries(
            directory, sorted({*(network.file for network in exported.values()), TOKENIZER})
        ),
        "accuracy": {},
    }
    write_manifest(directory, manifest)
