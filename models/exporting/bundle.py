"""Exports checkpoints as a bundle, which appears under its name only when it is complete."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.assemble import ENCODER, READER, TOKENIZER
from models.exporting.encoder import EncoderSide, choose_pooling, choose_similarity, open_encoder
from models.exporting.files import CheckpointError, require_as_downloaded, write_atomically
from models.exporting.graph import ExportedNetwork, GraphWriter, Precision
from models.exporting.layout import Checkpoint, read_checkpoint
from models.exporting.manifest import (
    ExportNaming,
    encoder_entry,
    reader_entry,
    require_sequence_length,
    write_exported_manifest,
)
from models.exporting.reader import open_reader
from models.exporting.sentence import Pooling, Similarity
from models.exporting.vocabulary import save_vocabulary, shared_vocabulary
from winnow.bundle import Bundle, load_bundle

_ENCODERS = {
    EncoderSide.QUESTION: "question_encoder.onnx",
    EncoderSide.PASSAGE: "passage_encoder.onnx",
}


@dataclass(frozen=True, slots=True)
class CheckpointDirectories:
    """Checkpoint directories in the Hugging Face layout. The encoders may share a directory."""

    question: Path
    passage: Path
    reader: Path


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export. None selects the setting of the checkpoint."""

    pooling: Pooling | None = None
    similarity: Similarity | None = None
    precision: Precision = Precision.FP32


def export_bundle(
    sources: CheckpointDirectories,
    target: Path,
    options: ExportOptions,
    naming: ExportNaming,
    report: Callable[[str], None],
) -> Bundle:
    """Makes a bundle of checkpoints at `target`, which must be missing or an empty directory.

    Raises:
        CheckpointError: a directory is incomplete, or the networks do not belong together.
        VocabularyError: a vocabulary does not fit its network, or two vocabularies differ.
        ParityError: a graph does not compute the same as its network.

    """
    question, passage, reader = map(
        _read_checkpoint, (sources.question, sources.passage, sources.reader)
    )
    tokenizer = shared_vocabulary([question, passage, reader])
    with write_atomically(target) as directory:
        writer = GraphWriter(directory, options.precision, report)
        exported, encoder = _export_encoders(writer, question, passage, options)
        network = open_reader(reader)
        exported["reader"] = writer.write("reader", network, reader, READER)
        save_vocabulary(tokenizer, directory / TOKENIZER)
        entries = {
            "encoder": encoder,
            "reader": reader_entry(
                exported["reader"], network, options.precision, naming.max_answer_tokens
            ),
        }
        write_exported_manifest(directory, naming, exported, entries, network.score)
        manifest = load_bundle(directory).manifest
    return Bundle(target, manifest)


def _read_checkpoint(directory: Path) -> Checkpoint:
    """Reads the configuration of a checkpoint, and checks everything except the weights."""
    checkpoint = read_checkpoint(directory)
    require_sequence_length(checkpoint)
    require_as_downloaded(checkpoint.directory, checkpoint.weights)
    return checkpoint


def _export_encoders(
    writer: GraphWriter, question: Checkpoint, passage: Checkpoint, options: ExportOptions
) -> tuple[dict[str, ExportedNetwork], dict[str, Any]]:
    """Returns the exported encoders by role, and their manifest entry.

    Question encoder and passage encoder share a graph if they compute the same.
    """
    pooling = choose_pooling(question, passage, options.pooling)
    similarity = choose_similarity(question, passage, options.similarity)
    question_network = open_encoder(question, EncoderSide.QUESTION, pooling, similarity)
    passage_network = open_encoder(passage, EncoderSide.PASSAGE, pooling, similarity)
    if question_network.width != passage_network.width:
        raise CheckpointError(
            f"{question.directory} makes vectors of {question_network.width} values, but "
            f"{passage.directory} of {passage_network.width}: name two encoders that were trained "
            "together"
        )
    exported = {}
    if question.directory == passage.directory and similarity is Similarity.COSINE:
        exported["encoder"] = writer.write("encoder", passage_network, passage, ENCODER)
    else:
        for side, network, checkpoint in (
            (EncoderSide.QUESTION, question_network, question),
            (EncoderSide.PASSAGE, passage_network, passage),
        ):
            role = f"{side} encoder"
            key = role.replace(" ", "_")
            exported[key] = writer.write(role, network, checkpoint, _ENCODERS[side])
    networks = list(exported.values())
    dimension = passage_network.dimension
    entry = encoder_entry(
        networks[0], networks[-1], dimension, pooling, similarity, writer.precision
    )
    return exported, entry
