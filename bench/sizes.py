"""Extrapolates accuracy from indexes of several sizes to a larger one.

    winnow evaluate --questions FILE --passages-to-read 10 --max-loss 0 --replies small.jsonl
    python -m bench sizes --replies 62256=small.jsonl --replies 663499=large.jsonl --at 21000000

Replies of all sizes are to the same questions. Two laws are fitted by least squares: the share of
right questions, or its log-odds, is linear in the logarithm of the number of passages. Their
difference, and the 95 % intervals from questions drawn again with replacement, are the uncertainty.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.cli.output import console, print_json, table
from winnow.text.scores import exact_match

_DRAWS, _SEED = 2_000, 1
_LEAST = 1e-4
"""The lowest and, from 1 down, the highest share that has log-odds."""
_LEVELS = (0.025, 0.975)
_MEASURES = ("gold among 1", "gold among 10", "exact match")
_LAWS = ("share", "log-odds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench sizes`."""
    parser.add_argument(
        "--replies",
        type=_size_and_file,
        action="append",
        required=True,
        metavar="PASSAGES=FILE",
        help="size of an index, and its replies; repeat for each size, at least two",
    )
    parser.add_argument("--at", type=int, default=21_000_000, help="size to extrapolate to")


def run(options: argparse.Namespace) -> int:
    """Prints each measure at each size, and its extrapolation; returns the exit code."""
    sizes = dict(sorted(options.replies))
    judged = {size: _judge(file) for size, file in sizes.items()}
    questions = set.intersection(*(set(each) for each in judged.values()))
    right = np.array([[each[q] for q in sorted(questions)] for each in judged.values()], float)
    rows = [
        {"measure": measure, **_measured(list(sizes), right[:, :, n], options.at)}
        for n, measure in enumerate(_MEASURES)
    ]
    if options.json:
        print_json({"questions": len(questions), "at": options.at, "rows": rows})
    else:
        console().print(f"{len(questions)} questions, in percent")
        console().print(
            table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
        )
    return 0


def _measured(sizes: list[int], right: NDArray[np.float64], at: int) -> dict[str, str]:
    """Returns the percentage at each size, and at `at` by each law with its interval.

    `right` tells for each size whether each question is right, [sizes, questions].
    """
    row = {
        f"{size:,}": f"{share:.1%}"[:-1] for size, share in zip(sizes, right.mean(1), strict=True)
    }
    chance = np.random.default_rng(_SEED)
    draws = chance.integers(0, right.shape[1], (_DRAWS, right.shape[1]))
    shares = np.stack([right.mean(1), *(right[:, draw].mean(1) for draw in draws)])
    for law in _LAWS:
        best, *drawn = extrapolate(np.array(sizes), shares, at, law == "log-odds")
        low, high = np.quantile(drawn, _LEVELS)
        row[f"{at:,} by {law}"] = f"{best:.1%} ({low:.1%} to {high:.1%})".replace("%", "")
    return row


def extrapolate(
    sizes: NDArray[np.int64], shares: NDArray[np.float64], at: int, log_odds: bool
) -> NDArray[np.float64]:
    """Fits a law to the shares at some sizes, [curves, sizes]; returns those at `at`, [curves]."""
    kept = np.clip(shares, _LEAST, 1 - _LEAST)
    values = np.log(kept / (1 - kept)) if log_odds else shares
    terms = np.stack([np.ones(len(sizes)), np.log(sizes)], axis=1)
    fitted, *_ = np.linalg.lstsq(terms, values.T, rcond=None)
    found = np.array([1.0, np.log(at)]) @ fitted
    extrapolated: NDArray[np.float64] = (
        1 / (1 + np.exp(-found)) if log_odds else np.clip(found, 0, 1)
    )
    return extrapolated


def _judge(file: Path) -> Mapping[str, tuple[bool, bool, bool]]:
    """Returns whether each question of a file of replies is right by each measure."""
    replies = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {reply["question"]: _judge_reply(reply) for reply in replies}


def _judge_reply(reply: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    answers = sorted(reply["answers"], key=lambda each: each["hybrid_distance"])
    gold = [each["gold"] for each in answers]
    best = max(answers, key=lambda each: each["score"], default=None)
    is_exact = best is not None and exact_match(best["text"], reply["accepted"])
    return any(gold[:1]), any(gold[:10]), is_exact


def _size_and_file(text: str) -> tuple[int, Path]:
    size, _, file = text.partition("=")
    return int(size), Path(file)
