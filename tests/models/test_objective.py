"""Tests of the reader's losses on tensors that can be computed by hand."""

import math

import pytest
import torch

from models.training.objective import reading_losses

QUESTIONS, PASSAGES, TOKENS = 2, 3, 5


def logits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Flat logits; the first two tokens belong to the question."""
    inside = torch.ones(QUESTIONS, PASSAGES, TOKENS, dtype=torch.bool)
    inside[:, :, :2] = False
    flat = torch.zeros(QUESTIONS, PASSAGES, TOKENS)
    return flat, flat.clone(), torch.zeros(QUESTIONS, PASSAGES), inside


def test_equal_logits_have_the_loss_of_guessing() -> None:
    start, end, relevance, inside = logits()
    answer = torch.full((QUESTIONS,), 3)
    span, chosen = reading_losses(start, end, relevance, inside, answer, answer)
    alone, together = math.log(3), math.log(9)
    assert span.item() == pytest.approx((alone + together) / 2, abs=1e-5)
    assert chosen.item() == pytest.approx(math.log(PASSAGES), abs=1e-5)


def test_certain_and_right_logits_have_no_loss() -> None:
    start, end, relevance, inside = logits()
    start[:, 0, 2] = end[:, 0, 4] = 50
    relevance[:, 0] = 50
    first, last = torch.full((QUESTIONS,), 2), torch.full((QUESTIONS,), 4)
    span, chosen = reading_losses(start, end, relevance, inside, first, last)
    assert span.item() == pytest.approx(0, abs=1e-6)
    assert chosen.item() == pytest.approx(0, abs=1e-6)


def test_logits_of_question_and_title_change_nothing() -> None:
    start, end, relevance, inside = logits()
    answer = torch.full((QUESTIONS,), 3)
    before = reading_losses(start, end, relevance, inside, answer, answer)
    start[:, :, :2] = 30
    assert reading_losses(start, end, relevance, inside, answer, answer) == before


def test_a_confident_span_in_a_negative_passage_is_punished() -> None:
    start, end, relevance, inside = logits()
    answer = torch.full((QUESTIONS,), 3)
    before, _ = reading_losses(start, end, relevance, inside, answer, answer)
    start[:, 1, 4] = 5
    after, _ = reading_losses(start, end, relevance, inside, answer, answer)
    assert after > before


def test_a_relevant_negative_is_punished() -> None:
    start, end, relevance, inside = logits()
    answer = torch.full((QUESTIONS,), 3)
    relevance[:, 2] = 4
    _, chosen = reading_losses(start, end, relevance, inside, answer, answer)
    assert chosen.item() > math.log(PASSAGES)
