"""Tests of training runs: plans, checkpoints and progress."""

import threading
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console
from tokenizers import Tokenizer

from models.data import Passage
from models.mining.mine import TrainingQuestion
from models.network.architecture import Reader, freeze_embeddings, load_body
from models.training import checkpoint
from models.training.examples import TokenisedQuestions, make_batch
from models.training.loop import RunState, Schedule, Trainer, TrainingError, learning_rate_share
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import TrainingProgress

STEPS = 4


@pytest.fixture
def encoded(tiny_weights: Path) -> TokenisedQuestions:
    texts = [" ".join(f"word{(n * k) % 40}" for n in range(30)) for k in range(1, 9)]
    passages = [Passage(f"word{n}", text) for n, text in enumerate(texts)]
    questions = []
    for number, text in enumerate(texts):
        answer = text.split()[5]
        others = tuple(n for n in range(len(texts)) if n != number)
        questions.append(
            TrainingQuestion(
                question="what won?",
                answer=answer,
                answer_start=text.index(answer),
                source="a",
                positive=number,
                negatives=others,
            )
        )
    return TokenisedQuestions(
        Tokenizer.from_file(str(tiny_weights / "tokenizer.json")), passages, questions
    )


PLAN = ReadingPlan({"a": 1}, questions=2, negatives=2)
SCHEDULE = Schedule(rate=1e-2, quantised=0.0)


def trainer(
    weights: Path, encoded: TokenisedQuestions, path: Path, schedule: Schedule = SCHEDULE
) -> tuple[Trainer, Reader]:
    torch.manual_seed(schedule.seed)
    reader = Reader(load_body(weights))
    freeze_embeddings(reader.body)
    task = ReadingTask(reader, encoded, PLAN, schedule.seed)
    assert task.steps == STEPS
    return Trainer(task, schedule, path), reader


@pytest.mark.parametrize("quantised", [0.0, 0.5])
def test_a_resumed_run_equals_an_uninterrupted_one(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path, quantised: float
) -> None:
    plan = Schedule(rate=1e-2, quantised=quantised)
    whole, straight = trainer(tiny_weights, encoded, tmp_path / "whole.pt", plan)
    whole.run(checkpoint_every=10, report=lambda _: None)

    first, _ = trainer(tiny_weights, encoded, tmp_path / "parts.pt", plan)
    first.run(checkpoint_every=1, report=lambda _: None, until=2)
    second, resumed = trainer(tiny_weights, encoded, tmp_path / "parts.pt", plan)
    assert second.step == 2
    second.run(checkpoint_every=1, report=lambda _: None)

    for name, weight in straight.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_training_changes_the_heads_and_leaves_the_embeddings(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    run, reader = trainer(tiny_weights, encoded, tmp_path / "run.pt")
    before = {name: weight.clone() for name, weight in reader.state_dict().items()}
    run.run(checkpoint_every=10, report=lambda _: None)
    table = "body.embeddings.word_embeddings.weight"
    assert torch.equal(before[table], reader.state_dict()[table])
    assert not torch.equal(before["span.weight"], reader.state_dict()["span.weight"])
    trained = [each.requires_grad for each in reader.parameters()]
    assert 0 < sum(trained) < len(trained)


def test_a_checkpoint_of_another_plan_is_refused(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    run, _ = trainer(tiny_weights, encoded, path, Schedule(seed=1))
    run.run(checkpoint_every=1, report=lambda _: None, until=1)
    with pytest.raises(TrainingError, match="was started with other settings"):
        trainer(tiny_weights, encoded, path, Schedule(seed=2))


def test_a_finished_run_stays_as_it_is_when_more_questions_are_mined(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    run, _ = trainer(tiny_weights, encoded, path)
    run.run(checkpoint_every=1, report=lambda _: None)
    before = path.read_bytes()
    encoded.questions, encoded.question_ids = encoded.questions * 2, encoded.question_ids * 2
    encoded.answer_spans = encoded.answer_spans * 2
    reader = Reader(load_body(tiny_weights))
    freeze_embeddings(reader.body)
    task = ReadingTask(reader, encoded, PLAN, SCHEDULE.seed)
    assert task.steps == 2 * STEPS
    Trainer(task, SCHEDULE, path).run(checkpoint_every=1, report=lambda _: None)
    assert path.read_bytes() == before


def test_an_interrupted_run_is_continued_to_its_end(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    path = tmp_path / "run.pt"
    run, _ = trainer(tiny_weights, encoded, path)
    run.run(checkpoint_every=1, report=lambda _: None, until=2)
    assert checkpoint.load_finished(path) is None
    again, _ = trainer(tiny_weights, encoded, path)
    again.run(checkpoint_every=1, report=lambda _: None)
    assert checkpoint.load_finished(path) is not None


def test_too_few_questions_for_one_step_are_refused(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    """Else no checkpoint would be written, and later steps would advise to train first."""
    reader = Reader(load_body(tiny_weights))
    task = ReadingTask(reader, encoded, ReadingPlan({"a": 1}, questions=100), seed=1)
    with pytest.raises(TrainingError, match="too few questions"):
        Trainer(task, SCHEDULE, tmp_path / "run.pt")


def test_a_loss_that_is_not_a_number_stops_the_run(
    tiny_weights: Path, encoded: TokenisedQuestions, tmp_path: Path
) -> None:
    run, reader = trainer(tiny_weights, encoded, tmp_path / "run.pt")
    with torch.no_grad():
        reader.relevance.bias.fill_(float("nan"))
    with pytest.raises(TrainingError, match="step 0"):
        run.run(checkpoint_every=1, report=lambda _: None)


def test_a_batch_is_a_function_of_seed_and_step(encoded: TokenisedQuestions) -> None:
    first, again = (make_batch(encoded, [0, 1, 2], 2, 1, 7) for _ in range(2))
    assert torch.equal(first.ids, again.ids)
    assert first.in_passage.shape[:2] == (3, 3)
    assert first.sequences == 9


def test_a_question_without_negatives_is_left_out(encoded: TokenisedQuestions) -> None:
    question = encoded.questions[0]
    encoded.questions[0] = TrainingQuestion(
        question=question.question,
        answer=question.answer,
        answer_start=question.answer_start,
        source="a",
        positive=0,
        negatives=(),
    )
    assert make_batch(encoded, [0, 1], 2, 1, 0).in_passage.shape[0] == 1


def test_progress_shows_running_means_of_every_loss() -> None:
    standing = RunState(step=0, steps=10)
    standing.record_step({"span": 2.0}, 4)
    standing.record_step({"span": 1.0}, 4)
    assert (standing.step, standing.sequences) == (2, 8)
    assert 1.0 < standing.losses["span"] < 2.0
    assert "span 1.9" in standing.summary()


def test_the_rate_rises_to_its_peak_and_falls_to_nothing() -> None:
    assert learning_rate_share(0.0, 0.1) == 0
    assert learning_rate_share(0.1, 0.1) == pytest.approx(1)
    assert learning_rate_share(0.55, 0.1) == pytest.approx(0.5)
    assert learning_rate_share(1.0, 0.1) == pytest.approx(0)


def test_progress_in_a_log_is_a_line_for_every_checkpoint() -> None:
    log = Console(file=StringIO(), force_terminal=False, width=200)
    with TrainingProgress(log_every=50, console=log) as progress:
        for step in (49, 50, 51, 2000):
            progress.show(
                RunState(
                    step=step, steps=2000, losses={"span": 1.5, "relevance": 0.25}, sequences=2400
                )
            )
    assert isinstance(log.file, StringIO)
    lines = log.file.getvalue().splitlines()
    assert len(lines) == 2
    assert "step 50/2000  span 1.500  relevance 0.250" in lines[0]


def test_progress_on_a_terminal_starts_no_thread() -> None:
    """A thread that starts beside those of PyTorch and OpenVINO once never began."""
    terminal = Console(file=StringIO(), force_terminal=True, width=200)
    before = threading.active_count()
    with TrainingProgress(log_every=50, console=terminal) as progress:
        progress.show(RunState(step=1, steps=10, losses={"span": 1.5}, sequences=12))
        assert threading.active_count() == before
    assert isinstance(terminal.file, StringIO)
    assert "span 1.500" in terminal.file.getvalue()
    assert "1/10" in terminal.file.getvalue()
