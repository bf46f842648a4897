"""Checkpoints to a bundle: every step, in order.

Knows what comes after what; the bundle appears under its name only once all of it is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.assemble import ENCODER, READER, TOKENIZER
from models.exporting.encoder import Side, open_encoder, pooling_of, similarity_of
from models.exporting.files import CheckpointError, require_as_downloaded, written_whole
from models.exporting.graph import ExportedNetwork, GraphWriter, Precision
from models.exporting.layout import Checkpoint, read_checkpoint
from models.exporting.manifest import (
    Naming,
    encoder_entry,
    reader_entry,
    require_room,
    write_manifest,
)
from models.exporting.reader import open_reader
from models.exporting.sentence import Pooling, Similarity
from models.exporting.vocabulary import save_vocabulary, shared_vocabulary
from winnow.bundle import Bundle, load_bundle

_ENCODERS = {Side.QUESTION: "question_encoder.onnx", Side.PASSAGE: "passage_encoder.onnx"}


@dataclass(frozen=True, slots=True)
class Sources:
    """Directories in the Hugging Face layout; those of the two encoders may be the same."""

    question: Path
    passage: Path
    reader: Path


@dataclass(frozen=True, slots=True)
class Choices:
    """Use of the networks; None follows the settings of the directories."""

    pooling: Pooling | None = None
    similarity: Similarity | None = None
    precision: Precision = Precision.FP32


def export_bundle(
    sources: Sources,
    target: Path,
    choices: Choices,
    naming: Naming,
    say: Callable[[str], None],
) -> Bundle:
    """Turns checkpoints into a bundle at `target`, which must not be there yet, or be empty.

    Raises:
        CheckpointError: a directory lacks something, or the networks do not belong together.
        VocabularyError: a vocabulary does not fit its network, or two differ.
        ParityError: a graph does not compute what its network does.

    """
    question, passage, reader = map(_checked, (sources.question, sources.passage, sources.reader))
    tokenizer = shared_vocabulary([question, passage, reader])
    with written_whole(target) as place:
        bench = GraphWriter(place, choices.precision, say)
        parts, encoders = _encoders(bench, question, passage, choices)
        read = open_reader(reader)
        parts["reader"] = bench.write("reader", read, reader, READER)
        save_vocabulary(tokenizer, place / TOKENIZER)
        entries = {
            "encoder": encoders,
            "reader": reader_entry(
                parts["reader"], read, choices.precision, naming.max_answer_tokens
            ),
        }
        write_manifest(place, naming, parts, entries, read.score)
        made = load_bundle(place)
    return Bundle(target, made.manifest)


def _checked(directory: Path) -> Checkpoint:
    """Reads a checkpoint, and refuses what can be refused without its weights."""
    checkpoint = read_checkpoint(directory)
    require_room(checkpoint)
    require_as_downloaded(checkpoint.directory, checkpoint.weights)
    return checkpoint


def _encoders(
    bench: GraphWriter, question: Checkpoint, passage: Checkpoint, choices: Choices
) -> tuple[dict[str, ExportedNetwork], dict[str, Any]]:
    """Returns both encoders and their entry; one graph serves both where it computes the same."""
    pooling = pooling_of(question, passage, choices.pooling)
    similarity = similarity_of(question, passage, choices.similarity)
    asked = open_encoder(question, Side.QUESTION, pooling, similarity)
    found = open_encoder(passage, Side.PASSAGE, pooling, similarity)
    if asked.width != found.width:
        raise CheckpointError(
            f"{question.directory} makes vectors of {asked.width} values, {passage.directory} of "
            f"{found.width}: name two encoders that were trained together"
        )
    parts = {}
    if question.directory == passage.directory and similarity is Similarity.COSINE:
        parts["encoder"] = bench.write("encoder", found, passage, ENCODER)
    else:
        for side, network, checkpoint in (
            (Side.QUESTION, asked, question),
            (Side.PASSAGE, found, passage),
        ):
            role = f"{side} encoder"
            parts[role.replace(" ", "_")] = bench.write(role, network, checkpoint, _ENCODERS[side])
    ends = list(parts.values())
    entry = encoder_entry(ends[0], ends[-1], found.dimension, pooling, similarity, bench.precision)
    return parts, entry
