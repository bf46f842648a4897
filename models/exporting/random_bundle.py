"""A bundle for measuring time: a reader of random weights beside another bundle's encoder.

The encoder, its entry and the vocabulary are copied as they are, so that an index built with the
other bundle can be served. What such a bundle answers means nothing, and its manifest says so.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models.assemble import READER, write
from models.exporting.appearing import appearing
from models.exporting.graph import Precision
from models.exporting.layout import read_checkpoint
from models.exporting.manifest import file_entries, reader_entry
from models.exporting.part import Part, Workbench
from models.exporting.reader import open_reader
from models.exporting.shape import Shape, save_random_reader
from winnow.bundle import Bundle, load_bundle
from winnow.bundle.manifest import FILE, WHOLE

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
    with appearing(target) as place, TemporaryDirectory() as directory:
        save_random_reader(shape, source.tokenizer, Path(directory), seed)
        checkpoint = read_checkpoint(Path(directory))
        network = open_reader(checkpoint)
        part = Workbench(place, precision, say).write("reader", network, checkpoint, READER)
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
            {"format": WHOLE, **_encoding(source), **parts, "accuracy": {}, "untrained": True},
        )
        made = load_bundle(place)
    return Bundle(target, made.manifest)


def _kept(source: Bundle) -> tuple[Path, ...]:
    return source.question_encoder, source.passage_encoder, source.tokenizer


def _encoding(source: Bundle) -> dict[str, Any]:
    """What the source's manifest says of encoding; its accuracy and rules were its reader's."""
    theirs = json.loads((source.directory / FILE).read_text(encoding="utf-8"))
    return {name: theirs[name] for name in ("encoder", "tokenizer")}


def _provenance(shape: Shape, seed: int, part: Part, source: Bundle) -> dict[str, Any]:
    size = f"{shape.layers} layers of {shape.width}"
    fidelity = asdict(part.fidelity)
    return {
        "command": "winnow models random",
        "encoder": _name(source),
        "reader": {"weights": NOTICE, "shape": size, "seed": seed, "fidelity": fidelity},
    }


def _name(bundle: Bundle) -> str:
    return f"{bundle.manifest.name} {bundle.manifest.version}"
