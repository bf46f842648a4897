"""Compares the PyTorch networks with their float32 and int8 graphs on real text."""

from collections.abc import Sequence
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory
from models.measuring.parity import largest_difference, mean_cosine, split_difference
from models.measuring.verify import EncoderParity, Verdict, check_limits
from models.network.export import ENCODER_OUTPUTS, READER_OUTPUTS
from models.steps.accuracy import GoldBySet, gold_figures
from models.steps.split_reader import trained_split_reader
from models.steps.students import trained_small_reader
from models.steps.training import trained_encoder, trained_reader
from models.workspace import ReaderKind, Workspace
from winnow.bundle import load_bundle

_PARITY_TEXTS = 40


def verify(
    weights: Path,
    workspace: Workspace,
    target: Path,
    data: DataDirectory,
    max_loss: float,
    limit: int | None,
    kind: ReaderKind,
) -> tuple[Verdict, GoldBySet]:
    """Returns the verdict, and the accuracy on gold paragraphs.

    Skips an encoder that was copied from another bundle, because it was verified for that bundle.
    """
    figures = gold_figures(workspace, target, data, limit, kind)
    texts, tokenizer = _parity_texts(data), weights / "tokenizer.json"
    encoder = None
    if workspace.run_checkpoint_path("encoder").is_file():
        trained, graph = trained_encoder(weights, workspace), workspace.graph("encoder", "fp32")
        encoder = EncoderParity(
            largest_difference(trained, graph, ENCODER_OUTPUTS, tokenizer, texts),
            mean_cosine(graph, load_bundle(target).passage_encoder, tokenizer, texts),
        )
    reader = _reader_difference(weights, workspace, kind, texts)
    return check_limits(encoder, reader, _exact_match(figures), max_loss), figures


def _reader_difference(
    weights: Path, workspace: Workspace, kind: ReaderKind, texts: Sequence[str]
) -> float:
    tokenizer = weights / "tokenizer.json"
    if kind.split_layers:
        lower, upper = (
            workspace.split_graph(part, "fp32", kind.split_layers) for part in ("lower", "upper")
        )
        split = trained_split_reader(weights, workspace, kind.split_layers)
        return split_difference(split, lower, upper, tokenizer, texts)
    reader = (
        trained_reader(weights, workspace)
        if kind.layers is None
        else trained_small_reader(weights, workspace, kind.layers)
    )
    graph = workspace.graph("reader", "fp32", kind.layers)
    return largest_difference(reader, graph, READER_OUTPUTS, tokenizer, texts)


def _exact_match(figures: GoldBySet) -> dict[str, dict[str, float]]:
    return {
        name: {precision: values["em"] for precision, values in by_precision.items()}
        for name, by_precision in figures.items()
    }


def _parity_texts(data: DataDirectory) -> Sequence[str]:
    """Returns about 40 questions with their passages, spread over a development set."""
    questions = data.development(DEVELOPMENT[0])
    stride = max(len(questions) // _PARITY_TEXTS, 1)
    return [f"{q.text} {q.gold.text}" for q in questions[::stride] if q.gold is not None]
