"""Accuracy of larger indexes, from that of smaller ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.__main__ import main
from bench.sizes import extrapolate


@pytest.mark.parametrize("log_odds", [False, True])
def test_shares_that_follow_a_law_are_continued_by_it(log_odds: bool) -> None:
    sizes, at = np.array([1_000, 10_000, 100_000]), 1_000_000
    curve = 1.2 - 0.1 * np.log10([*sizes, at])
    if log_odds:
        curve = 1 / (1 + np.exp(-curve))
    found = extrapolate(sizes, curve[None, :3], at, log_odds)
    assert found == pytest.approx(curve[3:])


def test_only_questions_of_all_sizes_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text(lines(reply("a", "yes"), reply("b", "yes"), reply("c", "no")))
    large.write_text(lines(reply("a", "yes"), reply("b", "no")))
    files = [f"--replies=100={small}", f"--replies=1000={large}"]
    assert main(["sizes", "--json", *files, "--at", "2000"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["questions"] == 2
    exact = {row["measure"]: row for row in report["rows"]}["exact match"]
    assert (exact["100"], exact["1,000"]) == ("100.0", "50.0")


def reply(question: str, text: str) -> dict[str, Any]:
    """Returns the reply of an index whose best answer is `text`; "yes" is right."""
    best = {"text": text, "score": 2.0, "hybrid_distance": 1.0, "gold": text == "yes"}
    other = {"text": "other", "score": 1.0, "hybrid_distance": 0.5, "gold": False}
    return {"question": question, "accepted": ["yes"], "answers": [best, other]}


def lines(*replies: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in replies)
