"""Predictions on a terminal and in a pipe."""

import io

from rich.console import Console

from winnow.cli.predict.render import render_predictions
from winnow.client import Entity, HeadPrediction, LabelScore

LABELS = tuple(LabelScore(f"label-{n}", 0.5 / (n + 1), not n) for n in range(7))
TEXT = "Ada\x1b[31m met 👩\u200d🚀 Zoe\u0308"


def shown(*heads: HeadPrediction, plain: bool = True) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=not plain, highlight=False)
    for line in render_predictions(TEXT, heads, 80, plain):
        console.print(line, soft_wrap=True)
    return out.getvalue().splitlines()


def test_labels_are_shown_with_their_scores_best_first() -> None:
    lines = shown(HeadPrediction(head_id="intent", version=3, labels=LABELS, out_of_scope=True))
    assert lines[0] == "intent  version 3  out of scope"
    assert lines[1].split() == ["✓", "label-0", "0.500", "█" * 15]
    assert lines[2].split()[:2] == ["label-1", "0.250"]
    assert len(lines) == 6, "the best five will do"


def test_entities_are_marked_in_the_text_and_listed() -> None:
    start = TEXT.index("Zoe")
    found = (
        Entity(label="person", text="Ada", start=0, end=3, score=0.9), Entity(label="person", text=TEXT[start:], start=start, end=len(TEXT), score=0.8),
    )  # fmt: skip
    lines = shown(HeadPrediction(head_id="names", version=1, entities=found))
    assert lines[1] == "  **Ada**\ufffd[31m met 👩\u200d🚀 **Zoe\u0308**"
    assert lines[2].split() == ["person", "0.900", "Ada"]
    terminal = shown(HeadPrediction(head_id="names", version=1, entities=found), plain=False)
    assert "\x1b[1;7mAda\x1b[0m" in terminal[1]
    assert "\x1b[31m met" not in terminal[1]


def test_a_head_without_entities_and_a_head_that_failed_say_so() -> None:
    lines = shown(
        HeadPrediction(head_id="names", version=1), HeadPrediction(head_id="mood", failure="gone")
    )
    assert lines == ["names  version 1", "  no entities", "mood", "  no prediction: gone"]
