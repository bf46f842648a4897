"""PyTorch, float32 ONNX and int8 compared on real text."""

from collections.abc import Sequence
from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory
from models.measuring.parity import largest_difference, mean_cosine
from models.measuring.verify import Verdict, judge
from models.network.export import ENCODER_OUTPUTS, READER_OUTPUTS
from models.steps.encoder import trained_encoder
from models.steps.gold import GoldBySet, gold_figures
from models.steps.reader import trained_reader
from models.workspace import Workspace
from winnow.bundle import load_bundle

_PARITY_TEXTS = 40


def verify(
    weights: Path,
    work: Workspace,
    target: Path,
    data: DataDirectory,
    max_loss: float,
    limit: int | None,
) -> tuple[Verdict, GoldBySet]:
    """What is not good enough, and the accuracy at gold paragraphs that was measured for it."""
    figures = gold_figures(work, target, data, limit)
    texts, tokenizer = _texts(data), weights / "tokenizer.json"
    encoder, reader = trained_encoder(weights, work), trained_reader(weights, work)
    encoder_graph, reader_graph = work.graph("encoder", "fp32"), work.graph("reader", "fp32")
    verdict = judge(
        largest_difference(encoder, encoder_graph, ENCODER_OUTPUTS, tokenizer, texts),
        largest_difference(reader, reader_graph, READER_OUTPUTS, tokenizer, texts),
        mean_cosine(encoder_graph, load_bundle(target).passage_encoder, tokenizer, texts),
        _exact_match(figures),
        max_loss,
    )
    return verdict, figures


def _exact_match(figures: GoldBySet) -> dict[str, dict[str, float]]:
    return {
        name: {precision: found["em"] for precision, found in sets.items()}
        for name, sets in figures.items()
    }


def _texts(data: DataDirectory) -> Sequence[str]:
    """Questions with their passages, spread over a development set."""
    questions = data.development(DEVELOPMENT[0])
    stride = max(len(questions) // _PARITY_TEXTS, 1)
    return [f"{q.text} {q.gold.text}" for q in questions[::stride] if q.gold is not None]
