"""Networks as ONNX graphs, in float32 and in int8."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from models.data import Passage
from models.mining.mine import TrainingQuestion, load
from models.network.architecture import Encoder, Reader
from models.network.export import export, quantise, shrink_embeddings
from models.network.neurons import FLOAT_PART, Inputs, split_outliers
from models.network.weights import open_tokenizer
from models.steps.training import trained_encoder, trained_reader
from models.training.examples import Encoded, longest
from models.workspace import Workspace

HEADS = ("/span/MatMul", "/relevance/Gemm")
_PROBES = 100
"""Sequences that outlier channels are looked for in; they are the same ones in every text."""


def export_encoder(weights: Path, work: Workspace) -> None:
    """Exports the encoder, trained if it was, in float32 and int8."""
    export_both(trained_encoder(weights, work), weights, work, "encoder")


def export_reader(weights: Path, work: Workspace) -> None:
    """Exports the trained reader in float32 and int8; its heads stay in float."""
    export_both(trained_reader(weights, work), weights, work, "reader")


def export_both(
    network: Encoder | Reader,
    weights: Path,
    work: Workspace,
    name: str,
    layers: int | None = None,
) -> None:
    """Exports `network` in float32, then in int8; changes it.

    A reader's outliers stay in float: they cost 0.3 MB, and int8 lost 1.5 exact match on dev-squad
    without that. An encoder's do not: its vectors have a cosine of 0.995 with those in float32.
    """
    export(network, work.graph(name, "fp32", layers))
    shrink_embeddings(network.body)
    if isinstance(network, Reader):
        split_outliers(network.body, probes(weights, *load(work.mined)))
    _quantise(network, work.graph(name, "int8", layers))


def _quantise(network: Encoder | Reader, target: Path) -> None:
    """Exports `network`, its table already int8, and quantises its matrices."""
    plain = target.with_suffix(".float.onnx")
    export(network, plain)
    quantise(plain, target, (*HEADS, FLOAT_PART) if isinstance(network, Reader) else ())
    plain.unlink()


def probes(
    weights: Path, passages: Sequence[Passage], questions: Sequence[TrainingQuestion]
) -> Iterator[Inputs]:
    """Yields some questions with their passages, one at a time, as the reader sees them."""
    chosen = random.Random(0).sample(questions, min(_PROBES, len(questions)))
    encoded = Encoded(open_tokenizer(weights), passages, chosen)
    generator = random.Random(0)
    for number in range(len(chosen)):
        example = encoded.positive(number, longest(generator), generator)
        if example is not None:
            ids, types = torch.tensor([example.ids]), torch.tensor([example.types])
            yield ids, torch.ones_like(ids), types
