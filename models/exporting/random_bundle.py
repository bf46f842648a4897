"""A bundle to measure latency: a reader with random weights beside another bundle's encoder.

The encoder, its entry and the vocabulary are copied, so that an index of the other bundle can be
served. The answers of such a bundle mean nothing, and its manifest says so. The sizes are those of
Turc et al. 2019, "Well-read students learn better", with heads of 64 values and an inner layer four
times as wide, as in all of BERT.
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

from models.assemble import READER, write
from models.exporting.files import written_whole
from models.exporting.graph import ExportedNetwork, GraphWriter, Precision
from models.exporting.layout import read_checkpoint
from models.exporting.manifest import file_entries, reader_entry
from models.exporting.reader import open_reader
from models.network.architecture import quiet
from winnow.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, FORMAT_FULL

_HEAD = 64


class Shape(StrEnum):
    """A size of BERT."""

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
        """Values of a token's state."""
        return _SIZES[self][1]


_SIZES = {
    Shape.BASE: (12, 768),
    Shape.MEDIUM: (8, 512),
    Shape.SMALL: (4, 512),
    Shape.MINI: (4, 256),
    Shape.TINY: (2, 128),
}


def save_random_reader(shape: Shape, tokenizer: Path, directory: Path, seed: int) -> None:
    """Saves a reader of `shape` for the words of `tokenizer`, in the Hugging Face layout."""
    words = Tokenizer.from_file(str(tokenizer))
    config = BertConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.width // _HEAD,
        intermediate_size=4 * shape.width,
    )
    torch.manual_seed(seed)
    with quiet():
        BertForQuestionAnswering(config).save_pretrained(directory)
    words.save(str(directory / "tokenizer.json"))


NOTICE = "random weights, for latency only"


def random_bundle(
    shape: Shape,
    target: Path,
    source: Bundle,
    precision: Precision,
    seed: int,
    say: Callable[[str], None],
) -> Bundle:
    """Makes a bundle at `target` with a random reader of `shape` and the encoder of `source`.

    Raises:
        CheckpointError: `target` is there already.
        ParityError: the graph does not compute what the network does.

    """
    with written_whole(target) as place, TemporaryDirectory() as directory:
        save_random_reader(shape, source.tokenizer, Path(directory), seed)
        checkpoint = read_checkpoint(Path(directory))
        network = open_reader(checkpoint)
        part = GraphWriter(place, precision, say).write("reader", network, checkpoint, READER)
        kept = {path.name for path in _kept(source)}
        for name in kept:
            shutil.copyfile(source.directory / name, place / name)
        longest = source.manifest.reader.max_answer_tokens
        parts = {
            "name": f"random-{shape}",
            "version": NOTICE,
            "licences": {"encoder": f"that of {_name(source)}"},
            "provenance": _provenance(shape, seed, part, source),
            "reader": reader_entry(part, network, precision, longest),
            "score": asdict(network.score),
            "files": file_entries(place, {*kept, part.file}),
        }
        write(
            place,
            {
                "format": FORMAT_FULL,
                **_encoding(source),
                **parts,
                "accuracy": {},
                "untrained": True,
            },
        )
        made = load_bundle(place)
    return Bundle(target, made.manifest)


def _kept(source: Bundle) -> tuple[Path, ...]:
    return source.question_encoder, source.passage_encoder, source.tokenizer


def _encoding(source: Bundle) -> dict[str, Any]:
    """Returns the fields of the source's manifest that describe encoding."""
    theirs = json.loads((source.directory / FILE).read_text(encoding="utf-8"))
    return {name: theirs[name] for name in ("encoder", "tokenizer")}


def _provenance(shape: Shape, seed: int, part: ExportedNetwork, source: Bundle) -> dict[str, Any]:
    size = f"{shape.layers} layers of {shape.width}"
    fidelity = asdict(part.fidelity)
    return {
        "command": "winnow models random",
        "encoder": _name(source),
        "reader": {"weights": NOTICE, "shape": size, "seed": seed, "fidelity": fidelity},
    }


def _name(bundle: Bundle) -> str:
    return f"{bundle.manifest.name} {bundle.manifest.version}"
