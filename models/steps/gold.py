"""Accuracy at gold paragraphs, at every precision."""

from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from models.steps.kind import ReaderKind
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.inference.runtime import Runtime, runs_bfloat16

GoldBySet = dict[str, dict[str, dict[str, float]]]
"""`em` and `f1` by question set and precision."""


def gold_figures(
    work: Workspace, target: Path, data: DataDirectory, limit: int | None, kind: ReaderKind
) -> GoldBySet:
    """Exact match and F1 at gold paragraphs, in percent, of the first `limit` questions of each
    set.
    """
    halves = kind.apart > 0
    readers = _halves(work, target, kind.apart) if halves else _readers(work, target, kind.layers)
    figures: GoldBySet = {}
    for name in DEVELOPMENT:
        questions = data.development(name)[:limit]
        figures[name] = {}
        for precision, reader in readers.items():
            gold = read_gold(reader, questions, f"{name} {precision}")
            figures[name][precision] = {"em": gold.em, "f1": gold.f1}
    return figures


def _readers(work: Workspace, target: Path, layers: int | None) -> dict[str, OfflineReader]:
    """The reader in float32 and int8, and in bfloat16 where this machine can run that."""
    manifest = read_manifest(target)
    tokenizer, whole = target / manifest.tokenizer, work.graph("reader", "fp32", layers)
    readers = {
        "fp32": OfflineReader(whole, tokenizer, manifest),
        "int8": OfflineReader(target / manifest.reader.file, tokenizer, manifest),
    }
    if runs_bfloat16():
        readers["bf16"] = OfflineReader(whole, tokenizer, manifest, Runtime.OPENVINO)
    return readers


def _halves(work: Workspace, target: Path, apart: int) -> dict[str, OfflineReader]:
    """The reader's halves in float32 and int8."""
    manifest = read_manifest(target)
    tokenizer = target / manifest.tokenizer
    lower, upper = (work.half(half, "fp32", apart) for half in ("lower", "upper"))
    return {
        "fp32": OfflineReader(upper, tokenizer, manifest, lower=lower),
        "int8": OfflineReader(target / manifest.reader.file, tokenizer, manifest),
    }
