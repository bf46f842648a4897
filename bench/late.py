"""Measures reading and scoring the candidates of a shard by late interaction.

Token vectors are random, and stored as a shard stores them. Every repetition scores other passages
with another question. With --index, measures the time of retrieving from all shards of an index,
with and without late interaction. With --words, this index is made first, if it is missing: real
passages in one shard, with vectors made from their words, because encoding them would take long.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.inputs import read_question_texts
from bench.late_retrieval import (
    build_word_index,
    encode_by_model,
    encode_by_words,
    measure_retrieval,
)
from bench.quantiles import nearest_rank
from bench.word_vectors import FINGERPRINT
from winnow.bundle import load_bundle
from winnow.cli.output import console as open_console
from winnow.cli.output import print_json, table
from winnow.content_node.late_interaction.scoring import read_vectors
from winnow.content_node.late_interaction.similarity import late_scores
from winnow.content_node.states.file import StateFile
from winnow.domain.question import QuestionTokens
from winnow.files.opened import OpenFile
from winnow.late_interaction.levels import PASSAGE_LEVELS, question_levels
from winnow.packaged import default_bundle
from winnow.reading.states_kind import CHECKSUM_BYTES, TOKEN_VECTORS

_CANDIDATES = (100, 200, 400)
_MAX_TOKENS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--passages", type=int, default=20_000, help="passages of the shard")
    parser.add_argument("--tokens", type=int, default=134, help="mean tokens of a passage")
    parser.add_argument("--question", type=int, default=12, help="tokens of a question")
    parser.add_argument("--values", type=int, default=32, help="values of a token vector")
    parser.add_argument(
        "--repetitions", type=int, default=200, help="repetitions for each number of candidates"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random vectors")
    parser.add_argument("--index", type=Path, help="index with token vectors to retrieve from")
    parser.add_argument(
        "--words",
        type=Path,
        metavar="PASSAGES",
        help="file whose first --passages passages make the index; see above",
    )
    parser.add_argument(
        "--questions",
        type=Path,
        action="append",
        help="JSON lines with `question` (.gz, .zst), for --index; repeat",
    )
    parser.add_argument(
        "--limit", type=int, default=200, help="number of questions of each file for --index"
    )


def run(options: argparse.Namespace) -> int:
    """Prints quantiles of the time to read and to score candidates, by the number of candidates.

    With an index, prints those of a retrieval instead.
    """
    if options.index is not None:
        _print(_measure_index(options), options)
        return 0
    chance = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as directory:
        file = _write(Path(directory) / "token-vectors.bin", options, chance)
        rows = [
            {"candidates": count, **_quantiles(list(_measure(file, count, options, chance)))}
            for count in _CANDIDATES
        ]
    _print(rows, options)
    return 0


def _measure_index(options: argparse.Namespace) -> list[dict[str, str | float]]:
    if options.questions is None:
        raise SystemExit("--index needs --questions")
    questions = [
        text for path in options.questions for text in read_question_texts(path, options.limit)
    ]
    bundle = load_bundle(default_bundle())
    if options.words is None:
        fingerprint = bundle.manifest.token_vectors_fingerprint
        encoded = encode_by_model(bundle, questions)
    else:
        if not options.index.exists():
            build_word_index(options.index, options.words, options.passages, bundle)
        fingerprint, encoded = FINGERPRINT, encode_by_words(bundle, questions)
    return measure_retrieval(options.index, fingerprint, encoded, bundle, 3)


def _print(rows: Sequence[Mapping[str, str | float]], options: argparse.Namespace) -> None:
    if options.json:
        print_json(rows)
        return
    columns = tuple(rows[0])
    lines = [
        [each if isinstance(each, str) else f"{each:.4g}" for each in row.values()] for row in rows
    ]
    open_console().print(table(columns, lines))


def _write(path: Path, options: argparse.Namespace, chance: np.random.Generator) -> StateFile:
    lengths = chance.normal(options.tokens, options.tokens / 5, options.passages)
    lengths = lengths.clip(3, _MAX_TOKENS).astype(np.int64)
    sizes = lengths * options.values + CHECKSUM_BYTES
    starts = np.concatenate([[0], np.cumsum(sizes)])
    levels = chance.integers(-PASSAGE_LEVELS, PASSAGE_LEVELS + 1, int(starts[-1]), np.int8)
    path.write_bytes(levels.tobytes())
    return StateFile(OpenFile(path), starts, options.values, TOKEN_VECTORS)


def _measure(
    file: StateFile, count: int, options: argparse.Namespace, chance: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Yields the milliseconds of reading and of scoring `count` passages."""
    largest = min(question_levels(options.values), 2**15 - 1)
    shape = (options.question, options.values)
    for _ in range(options.repetitions):
        question = QuestionTokens(
            chance.integers(-largest, largest, shape).astype(np.int16),
            np.ones(options.question, np.float32),
        )
        rows = chance.choice(file.rows, count, replace=False).astype(np.int64)
        began = time.perf_counter()
        vectors = read_vectors(file, rows)
        read = time.perf_counter()
        late_scores(question, vectors)
        yield (read - began) * 1e3, (time.perf_counter() - read) * 1e3


def _quantiles(times: list[tuple[float, float]]) -> dict[str, float]:
    reads, scores = ([each[part] for each in times] for part in (0, 1))
    both = [sum(each) for each in times]
    return {
        "read p50, ms": nearest_rank(reads, 0.5),
        "score p50, ms": nearest_rank(scores, 0.5),
        "both p50, ms": nearest_rank(both, 0.5),
        "both p99, ms": nearest_rank(both, 0.99),
    }
