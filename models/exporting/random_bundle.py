"""Makes a bundle for latency tests, with a random reader and the encoder of another bundle.

Encoder and vocabulary are copied, so the new bundle can serve an index of the source bundle. Its
answers are meaningless, and the manifest says so. The sizes are from Turc et al. 2019, "Well-read
students learn better". As in BERT, attention heads have 64 values and inner layers are four times
as wide.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForQuestionAnswering

from models.assemble import READER, file_entries, write_manifest
from models.exporting.files import write_atomically
from models.exporting.graph import ExportedNetwork, GraphWriter, Precision
from models.exporting.layout import read_checkpoint
from models.exporting.manifest import reader_entry
from models.exporting.reader import open_reader
from models.network.architecture import quiet_transformers
from winnow.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, FORMAT_FULL

_HEAD_WIDTH = 64
"""Width of an attention head."""


class ReaderSize(StrEnum):
    """Size of a BERT network, by the names of Turc et al."""

    BASE = "base"
    MEDIUM = "medium"
    SMALL = "small"
    MINI = "mini"
    TINY = "tiny"

    @property
    def layers(self) -> int:
        return _SIZES[self][0]

    @property
    def width(self) -> int:
        """Number of values of a token's state."""
        return _SIZES[self][1]


_SIZES = {
    ReaderSize.BASE: (12, 768),
    ReaderSize.MEDIUM: (8, 512),
    ReaderSize.SMALL: (4, 512),
    ReaderSize.MINI: (4, 256),
    ReaderSize.TINY: (2, 128),
}


def save_random_reader(shape: ReaderSize, tokenizer: Path, directory: Path, seed: int) -> None:
    """Saves a random reader for the vocabulary of `tokenizer`, in the Hugging Face layout."""
    vocabulary = Tokenizer.from_file(str(tokenizer))
    config = BertConfig(
        vocab_size=vocabulary.get_vocab_size(),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.width // _HEAD_WIDTH,
        intermediate_size=4 * shape.width,
    )
    torch.manual_seed(seed)
    with quiet_transformers():
        BertForQuestionAnswering(config).save_pretrained(directory)
    vocabulary.save(str(directory / "tokenizer.json"))


NOTICE = "random weights, for latency only"


def random_bundle(
    shape: ReaderSize,
    target: Path,
    source: Bundle,
    precision: Precision,
    seed: int,
    report: Callable[[str], None],
) -> Bundle:
    """Makes a bundle at `target` with a random reader of `shape` and the encoder of `source`.

    Raises:
        CheckpointError: `target` exists.
        ParityError: the graph does not compute the same as the network.

    """
    with write_atomically(target) as directory, TemporaryDirectory() as temporary:
        save_random_reader(shape, source.tokenizer, Path(temporary), seed)
        checkpoint = read_checkpoint(Path(temporary))
        network = open_reader(checkpoint)
        writer = GraphWriter(directory, precision, report)
        exported = writer.write("reader", network, checkpoint, READER)
        copied = {source.question_encoder, source.passage_encoder, source.tokenizer}
        for path in copied:
            shutil.copyfile(path, directory / path.name)
        max_answer_tokens = source.manifest.reader.max_answer_tokens
        fields = {
            "name": f"random-{shape}",
            "version": NOTICE,
            "licences": {"encoder": f"that of {_bundle_name(source)}"},
            "provenance": _provenance(shape, seed, exported, source),
            "reader": reader_entry(exported, network, precision, max_answer_tokens),
            "score": asdict(network.score),
            "files": file_entries(
                directory, sorted({*(path.name for path in copied), exported.file})
            ),
        }
        write_manifest(
            directory,
            {
                "format": FORMAT_FULL,
                **_encoding_fields(source),
                **fields,
                "accuracy": {},
                "untrained": True,
            },
        )
        manifest = load_bundle(directory).manifest
    return Bundle(target, manifest)


def _encoding_fields(source: Bundle) -> dict[str, Any]:
    """Returns the fields of the source's manifest that describe encoding."""
    manifest = json.loads((source.directory / FILE).read_text(encoding="utf-8"))
    return {name: manifest[name] for name in ("encoder", "tokenizer")}


def _provenance(
    shape: ReaderSize, seed: int, exported: ExportedNetwork, source: Bundle
) -> dict[str, Any]:
    size = f"{shape.layers} layers of {shape.width}"
    fidelity = asdict(exported.fidelity)
    return {
        "command": "winnow models random",
        "encoder": _bundle_name(source),
        "reader": {"weights": NOTICE, "shape": size, "seed": seed, "fidelity": fidelity},
    }


def _bundle_name(bundle: Bundle) -> str:
    return f"{bundle.manifest.name} {bundle.manifest.version}"
