"""Tests of training an encoder: batches, losses and held-out articles."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learning import only
from tokenizers import Tokenizer

from models.data import DataError, Passage
from models.mining.held_out import is_held_out
from models.mining.mine import TrainingQuestion, save_mined, split_held_out
from models.network.architecture import Encoder, freeze_embeddings, load_body
from models.steps.calibration import Calibration
from models.training.encoding_task import EncodingPlan, EncodingTask
from models.training.loop import Schedule, Trainer
from models.training.order import article_batches
from models.workspace import Workspace

PASSAGES = [
    Passage(f"word{n // 4}", " ".join(f"word{(n * k + k) % 40}" for k in range(20)))
    for n in range(16)
]
ASKED = [
    TrainingQuestion(
        question=f"what won word{n}?",
        answer=PASSAGES[n].text.split()[3],
        answer_start=18,
        source="a",
        positive=n,
        negatives=((n + 5) % 16,),
    )
    for n in range(16)
]


def task(weights: Path, plan: EncodingPlan) -> EncodingTask:
    torch.manual_seed(0)
    encoder = Encoder(load_body(weights))
    freeze_embeddings(encoder.body)
    words = Tokenizer.from_file(str(weights / "tokenizer.json"))
    return EncodingTask(
        encoder=encoder, tokenizer=words, passages=PASSAGES, questions=ASKED, plan=plan, seed=1
    )


def test_training_moves_questions_nearer_to_their_passages(
    tiny_weights: Path, tmp_path: Path
) -> None:
    learnt = task(tiny_weights, EncodingPlan(passes={"a": 12}, passages=8, together=4))
    before = only(learnt, 0).losses["retrieval"].item()
    Trainer(learnt, Schedule(rate=1e-2, quantised=0.0), tmp_path / "run.pt").run(
        100, lambda _: None
    )
    assert only(learnt, 0).losses["retrieval"].item() < before


def test_a_step_is_a_function_of_its_number(tiny_weights: Path) -> None:
    learnt = task(tiny_weights, EncodingPlan(passes={"a": 2}, passages=8, together=4))
    first, again = only(learnt, 1), only(learnt, 1)
    assert torch.equal(first.losses["retrieval"], again.losses["retrieval"])


def test_questions_whose_answer_is_cut_off_are_left_out(tiny_weights: Path) -> None:
    long, short = (
        EncodingPlan(passes={"a": 1}, passages=4),
        EncodingPlan(passes={"a": 1}, passages=4, tokens=5),
    )
    assert task(tiny_weights, long).steps == 4
    assert task(tiny_weights, short).steps == 0


@given(st.integers(0, 100), st.integers(1, 6), st.integers(1, 6))
def test_passages_of_an_article_are_in_the_same_batch(
    seed: int, articles: int, batches: int
) -> None:
    names = [f"article {n % articles}" for n in range(4 * articles * batches)]
    found = article_batches(["a"] * len(names), names, {"a": 1.0}, together=4, batch=4, seed=seed)
    assert Counter(n for group in found for n in group) == Counter(range(len(names)))
    assert all(len({names[n] for n in group}) == 1 for group in found)


def test_each_source_has_its_number_of_passes() -> None:
    found = article_batches(["a"] * 8 + ["b"] * 8, ["x"] * 16, {"a": 2.0, "b": 0.5}, 4, 4, seed=0)
    seen = Counter("ab"[n >= 8] for group in found for n in group)
    assert seen == {"a": 16, "b": 4}


def test_whole_articles_are_held_out() -> None:
    learnt, held = split_held_out(ASKED, PASSAGES)
    assert sorted(map(id, learnt + held)) == sorted(map(id, ASKED))
    titles = {PASSAGES[q.positive].title for q in held}
    assert not titles & {PASSAGES[q.positive].title for q in learnt}


def test_about_one_article_in_sixteen_is_held_out() -> None:
    held = sum(is_held_out(Passage(f"article {n}", "text")) for n in range(16_000))
    assert held == pytest.approx(1_000, rel=0.1)


def test_calibration_fits_on_held_out_questions_only(tmp_path: Path) -> None:
    titled = [Passage(f"article {n}", PASSAGES[0].text) for n in range(40)]
    asked = [replace(ASKED[0], source="squad", positive=n, negatives=()) for n in range(40)]
    learnt, held = split_held_out(asked, titled)
    workspace = Workspace(tmp_path)
    calibration = Calibration(workspace, tmp_path / "bundle", print, share=0.001)
    save_mined(workspace.mined_questions, titled, asked)
    _, (drawn,) = calibration.held_out(seed=0)  # a small share is one question
    assert drawn.positive in {each.positive for each in held}
    save_mined(workspace.mined_questions, titled, learnt)
    with pytest.raises(DataError, match="has no held-out questions"):
        calibration.held_out(seed=0)
