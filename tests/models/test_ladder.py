"""Tests of smaller networks: initial weights, losses and ladders of bundles."""

import copy
from pathlib import Path

import pytest
import torch
from learning import only
from tokenizers import Tokenizer
from torch.nn.functional import cosine_similarity

from models.network.architecture import Encoder, Reader, evenly_spaced, load_body, shorten_body
from models.steps.bundle import LadderBundle, ladder_bundles
from models.training.loop import Schedule, Trainer
from models.training.objective import imitation_loss, states_distance
from models.training.question_task import QuestionPlan, QuestionTask

QUESTIONS, PASSAGES, TOKENS = 2, 3, 5
TEXTS = [f"who won word{n % 40} in word{n * 7 % 40}" for n in range(64)]


@pytest.mark.parametrize(
    ("of", "layers", "kept"),
    [
        (6, 6, [0, 1, 2, 3, 4, 5]),
        (6, 4, [0, 2, 3, 5]),
        (6, 3, [0, 2, 5]),
        (6, 2, [0, 5]),
        (6, 1, [0]),
        (12, 2, [0, 11]),
    ],
)
def test_the_first_and_the_last_layer_are_kept(of: int, layers: int, kept: list[int]) -> None:
    assert evenly_spaced(of, layers) == kept


@pytest.mark.parametrize("layers", [0, 7])
def test_more_layers_than_exist_cannot_be_kept(layers: int) -> None:
    with pytest.raises(ValueError, match=r"cannot choose \d of 6 layers"):
        evenly_spaced(6, layers)


def test_a_shortened_body_has_the_layers_it_kept(tiny_weights: Path) -> None:
    whole = load_body(tiny_weights)
    student = copy.deepcopy(whole)
    shorten_body(student, 1)
    assert student.config.num_hidden_layers == len(student.encoder.layer) == 1
    names = student.state_dict().keys()
    assert names < whole.state_dict().keys()
    assert all(torch.equal(student.state_dict()[name], whole.state_dict()[name]) for name in names)


def answers(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (QUESTIONS * PASSAGES, TOKENS)
    return (
        torch.randn(shape, generator=generator),
        torch.randn(shape, generator=generator),
        torch.randn(shape[0], generator=generator),
    )


def test_a_student_with_its_teachers_answers_has_no_loss() -> None:
    inside = torch.ones(QUESTIONS, PASSAGES, TOKENS, dtype=torch.bool)
    assert imitation_loss(answers(0), answers(0), inside).item() == pytest.approx(0, abs=1e-6)
    assert imitation_loss(answers(1), answers(0), inside).item() > 0.1


def test_the_divergence_ignores_a_text_itself() -> None:
    inside = torch.ones(QUESTIONS, PASSAGES, TOKENS, dtype=torch.bool)
    inside[:, :, 0] = False
    said, told = answers(1), answers(0)
    before = imitation_loss(said, told, inside)
    said[0][:, 0] += 5
    assert imitation_loss(said, told, inside).item() == pytest.approx(before.item())


def test_states_are_compared_where_there_is_text() -> None:
    generator = torch.Generator().manual_seed(0)
    told = torch.randn(2, TOKENS, 8, generator=generator)
    said, mask = told.clone(), torch.ones(2, TOKENS, dtype=torch.long)
    mask[1, 3:] = 0
    said[1, 3:] += 100
    assert states_distance(said, told, mask).item() == 0
    assert states_distance(torch.zeros_like(told), told, mask).item() == pytest.approx(1, rel=0.1)


def test_a_student_encoder_learns_its_teachers_vectors(tiny_weights: Path, tmp_path: Path) -> None:
    teacher = Encoder(load_body(tiny_weights))
    student = copy.deepcopy(teacher)
    shorten_body(student.body, 1)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in student.parameters():
            weights.add_(torch.randn_like(weights) * 0.3)
    words = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    plan = QuestionPlan(layers=1, passes=8, texts=16)
    task = QuestionTask(
        student=student, teacher=teacher, tokenizer=words, texts=TEXTS, plan=plan, seed=1
    )
    before = only(task, 0).losses["distance"].item()
    Trainer(task, Schedule(rate=1e-2, quantised=0.0), tmp_path / "run.pt").run(100, lambda _: None)
    assert only(task, 0).losses["distance"].item() < before / 2


def test_texts_of_a_step_are_of_one_length_and_long_ones_are_cut(tiny_weights: Path) -> None:
    network = Encoder(load_body(tiny_weights))
    words = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    texts = [*TEXTS, *(f"{'word1 ' * 100}word{n}" for n in range(8))]
    task = QuestionTask(
        student=network,
        teacher=network,
        tokenizer=words,
        texts=texts,
        plan=QuestionPlan(layers=1, passes=1, texts=4),
        seed=1,
    )
    assert task.steps == len(texts) / 4
    assert {len(only(task, step).losses) for step in range(task.steps)} == {2}


def test_a_student_of_the_reader_starts_with_its_heads(tiny_weights: Path) -> None:
    teacher = Reader(load_body(tiny_weights)).eval()
    student = copy.deepcopy(teacher)
    shorten_body(student.body, 1)
    states = torch.randn(2, TOKENS, 16)
    for said, told in zip(student.read(states), teacher.read(states), strict=True):
        assert cosine_similarity(said.flatten(), told.flatten(), dim=0).item() == pytest.approx(1)


def test_every_combination_beside_the_calibrated_one_is_made() -> None:
    assert ladder_bundles(4, [3, 2]) == [
        LadderBundle(4, 3),
        LadderBundle(4, 2),
        LadderBundle(4, reader_precision="fp32"),
        LadderBundle(4, encoder_precision="fp32"),
        LadderBundle(4, reader_precision="fp32", encoder_precision="fp32"),
    ]
    names = [each.name for reader in (None, 4, 3) for each in ladder_bundles(reader, [3, 2])]
    assert len(set(names)) == len(names)
    assert LadderBundle(None, 2, "fp32").name == "reader-6-fp32-encoder-2-int8"
