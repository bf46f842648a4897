"""Exact match and F1 of a reader at gold paragraphs, at every precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory, DataError, Question
from models.measuring.reading import OfflineReader
from models.workspace import ReaderKind, Workspace
from winnow.bundle import read_manifest
from winnow.files.opened import sha256
from winnow.inference.runtime import INT8, Runtime, runs_bfloat16
from winnow.text.scores import exact_match, f1


@dataclass(frozen=True, slots=True)
class GoldFigures:
    """Percent over all questions."""

    questions: int
    em: float
    f1: float


def read_gold(reader: OfflineReader, questions: Sequence[Question], what: str) -> GoldFigures:
    """Reads the gold passage of every question that has one."""
    work = [(q, q.gold) for q in questions if q.gold is not None]
    readings = reader.read_all([(q.text, gold, 0.0) for q, gold in work], what)
    pairs = [(reading.text, q.answers) for reading, (q, _) in zip(readings, work, strict=True)]
    matches = [exact_match(text, answers) for text, answers in pairs]
    overlaps = [f1(text, answers) for text, answers in pairs]
    return GoldFigures(
        len(pairs),
        round(100 * sum(matches) / len(pairs), 2),
        round(100 * sum(overlaps) / len(pairs), 2),
    )


GoldBySet = dict[str, dict[str, dict[str, float]]]
"""`em` and `f1` by question set and precision."""


def gold_figures(
    work: Workspace, target: Path, data: DataDirectory, limit: int | None, kind: ReaderKind
) -> GoldBySet:
    """Returns exact match and F1 at gold paragraphs, in percent, of the first `limit` questions of
    each set.

    Raises:
        DataError: the bundle has another reader than the one of `work` that is meant.

    """
    expect_same(work, target, kind)
    split = kind.apart > 0
    readers = (
        _split_readers(work, target, kind.apart) if split else _readers(work, target, kind.layers)
    )
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
        graphs = {own.file: work.split_graph("upper", INT8, kind.apart)}
        graphs |= {apart.lower: work.split_graph("lower", INT8, kind.apart)} if apart else {}
    for graph in graphs.values():
        if not graph.is_file():
            raise DataError(
                f"there is no {graph}: export it by `winnow models assemble`, or name the "
                "directory where that was done by --work"
            )
    equally_split = (apart is not None) == (kind.apart > 0)
    if not equally_split or any(
        sha256(graph) != manifest.files[name].sha256 for name, graph in graphs.items()
    ):
        raise DataError(
            f"the reader in bundle {target} is not the {kind} of {work.root}: pass the bundle "
            "assembled from it with --bundle, or assemble it again"
        )


def _readers(work: Workspace, target: Path, layers: int | None) -> dict[str, OfflineReader]:
    """Returns the reader in float32 and int8, and in bfloat16 where this machine can run that."""
    manifest = read_manifest(target)
    tokenizer, whole = target / manifest.tokenizer, work.graph("reader", "fp32", layers)
    readers = {
        "fp32": OfflineReader(graph=whole, tokenizer=tokenizer, manifest=manifest),
        "int8": OfflineReader(
            graph=target / manifest.reader.file, tokenizer=tokenizer, manifest=manifest
        ),
    }
    if runs_bfloat16():
        readers["bf16"] = OfflineReader(
            graph=whole, tokenizer=tokenizer, manifest=manifest, runtime=Runtime.OPENVINO
        )
    return readers


def _split_readers(work: Workspace, target: Path, apart: int) -> dict[str, OfflineReader]:
    """Returns the split reader in float32 and int8."""
    manifest = read_manifest(target)
    tokenizer = target / manifest.tokenizer
    lower, upper = (work.split_graph(half, "fp32", apart) for half in ("lower", "upper"))
    return {
        "fp32": OfflineReader(graph=upper, tokenizer=tokenizer, manifest=manifest, lower=lower),
        "int8": OfflineReader(
            graph=target / manifest.reader.file, tokenizer=tokenizer, manifest=manifest
        ),
    }
