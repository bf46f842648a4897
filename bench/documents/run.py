"""Measures answers from documents: 76 files of 8 formats, and questions written by hand.

    python -m bench documents [--index INDEX] [--replies FILE] [--json]

Builds an index of the files in bench/documents/files, and asks the questions with ten passages
read. The span, the sentence and the passage of the best answer are judged even if the answer is
refused; `shown` counts only answers that are not. The last figures are refusals at the confidence
that keeps 95 % of the right spans. Needs the extra `documents`. Takes about ten minutes on two
cores; --index reuses an index of the same files. Exits with 1 if a figure misses its target.

`--collection` measures another collection: a directory with `files` and `questions.jsonl`.
`--first-answer` measures instead how long the files take to the answer of one question.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.documents.asking import ask_all
from bench.documents.collection import Collection, Question, read_collection
from bench.documents.figures import JudgedReply, figures_of
from bench.documents.first_answer import measure_first_answer
from bench.documents.judging import contains_any
from bench.figures import Figure, print_figures
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.document import Document
from winnow.standalone.index import AsyncIndex
from winnow.telemetry.progress import StageProgress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench documents`."""
    parser.add_argument(
        "--collection",
        type=Path,
        default=Path(__file__).parent,
        help="directory with `files`, `questions.jsonl` and `false-premises.jsonl`",
    )
    parser.add_argument("--index", type=Path, help="directory of an index to use or to build")
    parser.add_argument("--bundle", type=Path, help="directory of the bundle")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question")
    parser.add_argument("--replies", type=Path, help="file to write the judged replies to")
    parser.add_argument(
        "--check", action="store_true", help="only look for the answers in the converted files"
    )
    parser.add_argument(
        "--first-answer",
        metavar="QUESTION",
        help="only measure the time from `winnow up` on the files to the answer of this question",
    )


def run(options: argparse.Namespace) -> int:
    """Measures and prints the figures; returns the exit code."""
    if options.first_answer:
        figures = measure_first_answer(options.collection / "files", options.first_answer)
        return print_figures(figures, as_json=options.json)
    collection = read_collection(options.collection)
    if options.check:
        return print_figures(_check(collection), as_json=options.json)
    with ExitStack() as stack:
        index = options.index or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "index"
        if not index.exists():
            _build(collection.files, index, options.bundle)
        replies, false_premises = asyncio.run(
            _ask(collection, index, options.bundle, options.every)
        )
    if options.replies is not None:
        _write_replies([*replies, *false_premises], options.replies)
    return print_figures(figures_of(replies, false_premises), as_json=options.json)


def _build(folder: Path, out: Path, bundle: Path | None) -> None:
    """Builds an index in `out`, which must not exist; raises CalledProcessError if it fails."""
    chosen = ["--bundle", str(bundle)] if bundle is not None else []
    command = [sys.executable, "-m", "winnow", "index", "build", "--out", str(out)]
    subprocess.run([*command, "--documents", str(folder), *chosen], check=True, stdout=sys.stderr)


async def _ask(
    collection: Collection, index: Path, bundle: Path | None, every: int
) -> tuple[list[JudgedReply], list[JudgedReply]]:
    """Asks the questions, and those with a false premise."""
    questions = collection.questions[::every]
    false_premises = [
        Question(id=each.id, text=each.text, answers=(), sentence="", document="", kind="")
        for each in collection.false_premises[::every]
    ]
    with StageProgress() as progress:
        async with AsyncIndex.open(index, bundle=bundle) as opened:
            progress.start("questions", len(questions) + len(false_premises))
            return (
                await ask_all(opened, questions, progress.advance),
                await ask_all(opened, false_premises, progress.advance),
            )


def _check(collection: Collection) -> list[Figure]:
    """Counts the answers that the converted files contain, for each kind of file."""
    texts = {name: each.text for name, each in _convert_folder(collection.files).items()}
    answerable = [each for each in collection.questions if each.answers]
    figures = [Figure("all", "converted files", len(texts))]
    for kind in sorted({each.kind for each in answerable}):
        some = [each for each in answerable if each.kind == kind]
        lost = [q for q in some if not contains_any(texts.get(q.document, ""), q.answers)]
        figures.append(
            Figure(kind, "questions with an answer in the text", 1 - len(lost) / len(some))
        )
        figures += [Figure(kind, f"lost: {q.id} {q.document}: {q.answers[0]}", 0) for q in lost]
    return figures


def _convert_folder(folder: Path) -> dict[str, Document]:
    """Converts all files of a folder; returns the converted ones by their path in it."""
    paths = sorted(each for each in folder.rglob("*") if each.is_file())
    with DocumentConverter() as converter:
        return {
            path.relative_to(folder).as_posix(): document
            for path, document in converter.convert(paths)
            if isinstance(document, Document)
        }


def _write_replies(replies: Sequence[JudgedReply], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for each in replies:
            best = each.best
            row = {
                "id": each.question.id,
                "question": each.question.text,
                "answers": each.question.answers,
                "shown": each.shown,
                "span": best and best.span,
                "sentence": best and best.sentence,
                "document": best and best.passage.document,
                "confidence": best and best.confidence,
                "sentence_confidence": best and best.sentence_confidence,
                "score": best and best.score,
                "right_span": each.span_is_right,
                "right_sentence": each.sentence_is_right,
                "gold_rank": each.gold_rank,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
