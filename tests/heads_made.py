"""Tiny bundles for training heads, and training texts that are easy to classify."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from checkpoints import make

from models.exporting.bundle import CheckpointDirectories, ExportOptions, export_bundle
from models.exporting.manifest import ExportNaming
from winnow.bundle import Bundle

FILLING = ["the", "in", "tour", "black"]
PEOPLE, RIVERS, NEITHER = ["froome", "who"], ["danube", "rises"], ["forest"]


def tiny_bundle(directory: Path, name: str, **config: object) -> Bundle:
    """Exports a bundle of random networks of width 16; `config` changes the encoder."""
    encoder = make("bert", directory / f"{name}-encoder", **{"num_hidden_layers": 1, **config})
    reader = make("bert-reader", directory / f"{name}-reader")
    naming = ExportNaming(
        name=name, version="1", licence="none", max_answer_tokens=10, no_answer_below=-1e9
    )
    sources = CheckpointDirectories(encoder, encoder, reader)
    return export_bundle(sources, directory / name, ExportOptions(), naming, lambda _: None)


def write_lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def texts(path: Path, count: int = 120, seed: int = 0) -> Path:
    """Writes labelled texts about people, about rivers, and out of scope (label `oos`)."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        label = ("person", "river", "person", "river", "oos")[number % 5]
        own = {"person": PEOPLE, "river": RIVERS, "oos": NEITHER}[label]
        words = chance.choices(FILLING, k=2) + chance.choices(own, k=4)
        chance.shuffle(words)
        rows.append({"text": " ".join(words), "label": label})
    return write_lines(path, rows)


def sentences(path: Path, count: int = 120, seed: int = 0) -> Path:
    """Writes sentences with BIO labels of people, whose names have one or two words."""
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        tokens = chance.choices(FILLING, k=5)
        labels = ["O"] * len(tokens)
        place = chance.randrange(4)
        tokens[place], labels[place] = chance.choice(PEOPLE), "B-person"
        if chance.random() < 0.5:
            tokens[place + 1], labels[place + 1] = chance.choice(PEOPLE), "I-person"
        rows.append({"tokens": tokens, "labels": labels})
    return write_lines(path, rows)
