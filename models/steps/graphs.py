"""Exports trained networks as ONNX graphs, in float32 and in int8."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from models.data import Passage
from models.mining.mine import TrainingQuestion, load_mined
from models.network.architecture import Encoder, Reader
from models.network.export import export_graph, quantise_embeddings, quantise_graph
from models.network.neurons import FLOAT_PART, Inputs, split_outliers
from models.network.weights import open_tokenizer
from models.steps.training import trained_encoder, trained_reader
from models.training.examples import TokenisedQuestions, draw_max_tokens
from models.workspace import Workspace

HEAD_NODES = ("/span/MatMul", "/relevance/Gemm")
"""Nodes of a reader's heads, which stay in float."""
_PROBES = 100
"""Number of sequences to find outlier channels in. Few suffice, as every text has the same ones."""


def export_encoder(weights: Path, workspace: Workspace) -> None:
    """Exports the trained encoder, or else the pretrained one, in float32 and int8."""
    export_fp32_and_int8(trained_encoder(weights, workspace), weights, workspace, "encoder")


def export_reader(weights: Path, workspace: Workspace) -> None:
    """Exports the trained reader in float32 and int8. The output layers of the
    int8 graph stay in float32.
    """
    export_fp32_and_int8(trained_reader(weights, workspace), weights, workspace, "reader")


def export_fp32_and_int8(
    network: Encoder | Reader,
    weights: Path,
    workspace: Workspace,
    name: str,
    layers: int | None = None,
) -> None:
    """Exports `network` in float32, then in int8.

    The int8 export changes `network` in place.

    A reader's outlier channels stay in float, which costs 0.3 MB. In int8, they would lose 1.5
    points of exact match on dev-squad. An encoder needs no float channels: its int8 vectors have a
    cosine of 0.995 with its float32 vectors.
    """
    export_graph(network, workspace.graph(name, "fp32", layers))
    quantise_embeddings(network.body)
    if isinstance(network, Reader):
        split_outliers(network.body, probe_inputs(weights, *load_mined(workspace.mined_questions)))
    target = workspace.graph(name, "int8", layers)
    plain = target.with_suffix(".float.onnx")
    export_graph(network, plain)
    quantise_graph(plain, target, (*HEAD_NODES, FLOAT_PART) if isinstance(network, Reader) else ())
    plain.unlink()


def probe_inputs(
    weights: Path, passages: Sequence[Passage], questions: Sequence[TrainingQuestion]
) -> Iterator[Inputs]:
    """Yields the reader's inputs for a sample of questions with their passages, one at a time."""
    chosen = random.Random(0).sample(questions, min(_PROBES, len(questions)))
    encoded = TokenisedQuestions(open_tokenizer(weights), passages, chosen)
    generator = random.Random(0)
    for number in range(len(chosen)):
        example = encoded.positive(number, draw_max_tokens(generator), generator)
        if example is not None:
            ids, types = torch.tensor([example.ids]), torch.tensor([example.types])
            yield ids, torch.ones_like(ids), types
