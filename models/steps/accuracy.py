"""Measures exact match and F1 of a reader on gold paragraphs, at every precision."""

from collections.abc import Sequence
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory, DataError, Question
from models.measuring.reading import OfflineReader
from models.workspace import ReaderKind, Workspace
from winnow.bundle import read_manifest
from winnow.files.opened import sha256
from winnow.inference.options import Runtime
from winnow.inference.runtime import INT8, runs_bfloat16
from winnow.text.scores import exact_match, f1


def _measure_on_gold(
    reader: OfflineReader, questions: Sequence[Question], label: str
) -> dict[str, float]:
    """Returns mean exact match `em` and `f1` in percent on the gold passages of questions."""
    golds = [(q, q.gold) for q in questions if q.gold is not None]
    readings = reader.read_all([(q.text, gold, 0.0) for q, gold in golds], label)
    pairs = [(reading.answer, q.answers) for reading, (q, _) in zip(readings, golds, strict=True)]
    matches = [exact_match(text, answers) for text, answers in pairs]
    overlaps = [f1(text, answers) for text, answers in pairs]
    return {
        "em": round(100 * sum(matches) / len(pairs), 2),
        "f1": round(100 * sum(overlaps) / len(pairs), 2),
    }


GoldBySet = dict[str, dict[str, dict[str, float]]]
"""`em` and `f1` in percent, by question set and precision."""


def gold_figures(
    workspace: Workspace, target: Path, data: DataDirectory, limit: int | None, kind: ReaderKind
) -> GoldBySet:
    """Returns exact match and F1 on gold paragraphs of the first `limit` questions of each set.

    Raises:
        DataError: the bundle does not contain the reader of this kind in `workspace`.

    """
    require_matching_reader(workspace, target, kind)
    if kind.split_layers:
        readers = _split_readers(workspace, target, kind.split_layers)
    else:
        readers = _readers(workspace, target, kind.layers)
    figures: GoldBySet = {}
    for name in DEVELOPMENT:
        questions = data.development(name)[:limit]
        figures[name] = {}
        for precision, reader in readers.items():
            label = f"{name} {precision}"
            figures[name][precision] = _measure_on_gold(reader, questions, label)
    return figures


def require_matching_reader(workspace: Workspace, target: Path, kind: ReaderKind) -> None:
    """Checks that the bundle contains the reader of this kind in `workspace`.

    Raises:
        DataError: the bundle has another reader, or `workspace` has no such graph.

    """
    manifest = read_manifest(target)
    file, split_entry = manifest.reader.file, manifest.reader.apart
    graphs = {file: workspace.graph("reader", INT8, kind.layers)}
    if kind.split_layers:
        graphs = {file: workspace.split_graph("upper", INT8, kind.split_layers)}
        if split_entry:
            graphs[split_entry.lower] = workspace.split_graph("lower", INT8, kind.split_layers)
    for graph in graphs.values():
        if not graph.is_file():
            raise DataError(
                f"{graph} is missing: export it with `winnow models assemble`, or set --work to "
                "the directory that contains it"
            )
    same_kind = (split_entry is not None) == (kind.split_layers > 0)
    if not same_kind or any(
        sha256(graph) != manifest.files[name].sha256 for name, graph in graphs.items()
    ):
        raise DataError(
            f"the reader in bundle {target} is not the {kind} of {workspace.root}: set --bundle to "
            "the bundle assembled from that directory, or assemble the bundle again"
        )


def _readers(workspace: Workspace, target: Path, layers: int | None) -> dict[str, OfflineReader]:
    """Returns the reader in float32, int8 and, if this machine supports it, bfloat16."""
    manifest = read_manifest(target)
    tokenizer, exact = target / manifest.tokenizer, workspace.graph("reader", "fp32", layers)
    readers = {
        "fp32": OfflineReader(graph=exact, tokenizer=tokenizer, manifest=manifest),
        "int8": OfflineReader(
            graph=target / manifest.reader.file, tokenizer=tokenizer, manifest=manifest
        ),
    }
    if runs_bfloat16():
        readers["bf16"] = OfflineReader(
            graph=exact, tokenizer=tokenizer, manifest=manifest, runtime=Runtime.OPENVINO
        )
    return readers


def _split_readers(workspace: Workspace, target: Path, layers: int) -> dict[str, OfflineReader]:
    """Returns the split reader in float32 and int8."""
    manifest = read_manifest(target)
    tokenizer = target / manifest.tokenizer
    lower, upper = (workspace.split_graph(part, "fp32", layers) for part in ("lower", "upper"))
    return {
        "fp32": OfflineReader(graph=upper, tokenizer=tokenizer, manifest=manifest, lower=lower),
        "int8": OfflineReader(
            graph=target / manifest.reader.file, tokenizer=tokenizer, manifest=manifest
        ),
    }
