"""Tests of training a reader with a teacher."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import pytest
import torch
from learning import only
from torch import Tensor, nn

from models.network.architecture import Logits, Reader, all_states, load_body, shorten_body
from models.network.split_reader import SplitReader
from models.training.examples import Batch
from models.training.objective import imitation_loss, span_imitation_loss, states_distance
from models.training.reading_task import ReadingTask, batch_losses
from models.training.taught_task import DistillingPlan, DistillingTask, SplitReaderPlan, SplitTask

Network = TypeVar("Network", bound=nn.Module)


@dataclass
class OneBatch(Generic[Network]):
    """The same two questions, with two passages each, at every step."""

    network: Network
    steps: int = 7

    @property
    def settings_of_result(self) -> dict[str, Any]:
        return {"questions": 2}

    def losses(self, said: Logits, batch: Batch) -> dict[str, Tensor]:
        return batch_losses(said, batch)

    def batch(self, step: int) -> Batch:
        generator = torch.Generator().manual_seed(step)
        ids = torch.randint(5, 30, (4, 12), generator=generator)
        types = (torch.arange(12) >= 5).long().expand(4, 12)
        in_passage = types.view(2, 2, 12).bool()
        first, last = torch.tensor([6, 7]), torch.tensor([7, 9])
        return Batch(
            ids=ids,
            mask=torch.ones_like(ids),
            types=types,
            in_passage=in_passage,
            first=first,
            last=last,
        )


def reading_of(network: Network) -> ReadingTask[Network]:
    return cast(ReadingTask[Network], OneBatch(network))


@pytest.fixture
def teacher(tiny_weights: Path) -> Reader:
    torch.manual_seed(0)
    return Reader(load_body(tiny_weights)).eval()


def test_a_student_equal_to_its_teacher_has_no_loss(teacher: Reader) -> None:
    student = copy.deepcopy(teacher)
    task = DistillingTask(reading_of(student), teacher, DistillingPlan(layers=2))
    learnt = only(task, 0)
    assert set(learnt.losses) == {"span", "relevance", "answers", "states"}
    assert learnt.losses["answers"].item() == pytest.approx(0, abs=1e-4)
    assert learnt.losses["states"].item() == pytest.approx(0, abs=1e-4)
    assert learnt.sequences == 4


def test_a_split_student_is_compared_in_its_upper_layers(
    teacher: Reader,
) -> None:
    student = SplitReader(copy.deepcopy(teacher), 1)
    task = SplitTask(reading_of(student), teacher, SplitReaderPlan(apart=1))
    batch = task._reading.batch(0)
    inputs = (batch.ids, batch.mask, batch.types)
    upper = student.states(*inputs)[-1], all_states(teacher.body, *inputs)[-1]
    # of two layers one is apart, so one is compared
    expected = states_distance(*upper, batch.mask).item()
    assert only(task, 0).losses["states"].item() == pytest.approx(expected, rel=0.05)


def test_the_plan_weighs_the_teacher(teacher: Reader) -> None:
    student = copy.deepcopy(teacher)
    shorten_body(student.body, 1)
    reading = reading_of(student)
    once = only(DistillingTask(reading, teacher, DistillingPlan(layers=1, answers=1, states=1)), 0)
    more = only(DistillingTask(reading, teacher, DistillingPlan(layers=1, answers=3, states=0)), 0)
    assert more.losses["answers"].item() == pytest.approx(3 * once.losses["answers"].item())
    assert once.losses["states"].item() > 0
    assert more.losses["states"].item() == 0
    assert more.losses["span"].item() == once.losses["span"].item()


def test_a_teacher_without_ranking_ignores_negatives_and_relevance(
    teacher: Reader,
) -> None:
    student = copy.deepcopy(teacher)
    with torch.no_grad():
        student.relevance.weight += 1
    batch = OneBatch(student).batch(0)
    inputs = (batch.ids, batch.mask, batch.types)
    (start, end, relevance), told = student(*inputs), teacher(*inputs)
    in_negatives = torch.arange(12) * torch.tensor([0, 1, 0, 1])[:, None]
    said = start + in_negatives, end, relevance
    assert span_imitation_loss(said, told, batch.in_passage).item() == pytest.approx(0, abs=1e-5)
    assert imitation_loss(said, told, batch.in_passage).item() > 0.1
    said = start + in_negatives.flip(0), end, relevance
    assert span_imitation_loss(said, told, batch.in_passage).item() > 0.1


def test_a_teacher_without_ranking_ignores_the_state_of_relevance(
    teacher: Reader,
) -> None:
    student = copy.deepcopy(teacher)
    reading, plan = reading_of(student), DistillingPlan(layers=2, ranks=False)
    task = DistillingTask(reading, teacher, plan)
    told = [torch.randn(4, 12, 8)]
    said = [told[0].clone()]
    said[0][:, 0] += 5
    mask = torch.ones(4, 12, dtype=torch.long)
    assert task._states_distance(said, told, mask).item() == 0
    assert (
        DistillingTask(reading, teacher, DistillingPlan(layers=2))._states_distance(
            said, told, mask
        )
        > 1
    )


def test_the_states_of_a_teacher_fade_over_a_share_of_the_run() -> None:
    plan = DistillingPlan(layers=2, states=2.0, fading=0.5)
    assert [plan.states_weight(done) for done in (0, 0.25, 0.5, 0.9)] == [2.0, 1.0, 0.0, 0.0]
    assert DistillingPlan(layers=2, states=2.0).states_weight(0.9) == 2.0


def test_only_the_student_learns(teacher: Reader) -> None:
    student = SplitReader(copy.deepcopy(teacher), 1)
    task = SplitTask(reading_of(student), teacher, SplitReaderPlan(apart=1))
    sum(only(task, 0).losses.values(), start=torch.zeros(())).backward()  # type: ignore[no-untyped-call]
    assert any(each.grad is not None for each in student.parameters())
    assert all(each.grad is None for each in teacher.parameters())


def test_the_plan_of_a_run_names_both_plans(teacher: Reader) -> None:
    """A checkpoint is resumed only by its own plan."""
    weights = {"answers": 2.0, "states": 1.0, "fading": 0.0, "ranks": True}
    apart = SplitTask(reading_of(SplitReader(teacher, 1)), teacher, SplitReaderPlan(1))
    assert apart.settings_of_result == {
        "questions": 2,
        "apart": {"apart": 1, "neurons": 0, "begun": "", "averaged": False, **weights},
    }
    small = DistillingTask(reading_of(teacher), teacher, DistillingPlan(3))
    assert small.settings_of_result == {"questions": 2, "distilling": {"layers": 3, **weights}}
    assert small.steps == 7
