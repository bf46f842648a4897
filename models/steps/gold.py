"""Accuracy at gold paragraphs, at every precision."""

from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory
from models.data.rows import DataError
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from models.steps.kind import ReaderKind
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.files.opened import sha256
from winnow.inference.runtime import INT8, Runtime, runs_bfloat16

GoldBySet = dict[str, dict[str, dict[str, float]]]
"""`em` and `f1` by question set and precision."""


def gold_figures(
    work: Workspace, target: Path, data: DataDirectory, limit: int | None, kind: ReaderKind
) -> GoldBySet:
    """Exact match and F1 at gold paragraphs, in percent, of the first `limit` questions of each
    set.

    Raises:
        DataError: the bundle has another reader than the one of `work` that is meant.

    """
    expect_same(work, target, kind)
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


def expect_same(work: Workspace, target: Path, kind: ReaderKind) -> None:
    """Raises DataError if the bundle has another reader than the one of `work` that is meant."""
    manifest = read_manifest(target)
    own, apart = manifest.reader, manifest.reader.apart
    graphs = {own.file: work.graph("reader", INT8, kind.layers)}
    if kind.apart:
        graphs = {own.file: work.half("upper", INT8, kind.apart)}
        graphs |= {apart.lower: work.half("lower", INT8, kind.apart)} if apart else {}
    for graph in graphs.values():
        if not graph.is_file():
            raise DataError(
                f"there is no {graph}: export it by `winnow models assemble`, or name the "
                "directory where that was done by --work"
            )
    halves_alike = (apart is not None) == (kind.apart > 0)
    if not halves_alike or any(
        sha256(graph) != manifest.files[name].sha256 for name, graph in graphs.items()
    ):
        raise DataError(
            f"the reader of {target} is not {kind} in {work.root}: name the bundle that was "
            "assembled of it by --bundle, or assemble it anew"
        )


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
