"""PyTorch, float32 ONNX and int8 compared on real text."""

from collections.abc import Sequence
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory
from models.measuring.parity import largest_difference, mean_cosine, split_difference
from models.measuring.verify import EncoderParity, Verdict, judge
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
    work: Workspace,
    target: Path,
    data: DataDirectory,
    max_loss: float,
    limit: int | None,
    kind: ReaderKind,
) -> tuple[Verdict, GoldBySet]:
    """Returns the verdict, and the accuracy at gold paragraphs that it rests on.

    An encoder that was taken over from another bundle is not looked at: it was when it was made.
    """
    figures = gold_figures(work, target, data, limit, kind)
    texts, tokenizer = _texts(data), weights / "tokenizer.json"
    encoder = None
    if work.run("encoder").is_file():
        trained, graph = trained_encoder(weights, work), work.graph("encoder", "fp32")
        encoder = EncoderParity(
            largest_difference(trained, graph, ENCODER_OUTPUTS, tokenizer, texts),
            mean_cosine(graph, load_bundle(target).passage_encoder, tokenizer, texts),
        )
    reader = _reader_difference(weights, work, kind, texts)
    return judge(encoder, reader, _exact_match(figures), max_loss), figures


def _reader_difference(
    weights: Path, work: Workspace, kind: ReaderKind, texts: Sequence[str]
) -> float:
    tokenizer = weights / "tokenizer.json"
    if kind.apart:
        lower, upper = (work.split_graph(half, "fp32", kind.apart) for half in ("lower", "upper"))
        split = trained_split_reader(weights, work, kind.apart)
        return split_difference(split, lower, upper, tokenizer, texts)
    reader = (
        trained_reader(weights, work)
        if kind.layers is None
        else trained_small_reader(weights, work, kind.layers)
    )
    graph = work.graph("reader", "fp32", kind.layers)
    return largest_difference(reader, graph, READER_OUTPUTS, tokenizer, texts)


def _exact_match(figures: GoldBySet) -> dict[str, dict[str, float]]:
    return {
        name: {precision: found["em"] for precision, found in sets.items()}
        for name, sets in figures.items()
    }


def _texts(data: DataDirectory) -> Sequence[str]:
    """Returns questions with their passages, spread over a development set."""
    questions = data.development(DEVELOPMENT[0])
    stride = max(len(questions) // _PARITY_TEXTS, 1)
    return [f"{q.text} {q.gold.text}" for q in questions[::stride] if q.gold is not None]
