"""Losses of readers.

As in DPR (Karpukhin et al. 2020, section 6.1), one loss is for the relevance of the positive among
the passages of a question, and one for the span in the positive. The softmax of spans runs over all
passages of the question (shared normalisation, Clark and Gardner 2018), so that span logits of
different passages can be compared when answers are merged.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, kl_div

from models.network.architecture import Logits

_MASKED = -1e4


def reading_losses(
    start: Tensor, end: Tensor, relevance: Tensor, in_passage: Tensor, first: Tensor, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns span and relevance loss, each a mean over questions.

    Args:
        start: logits [questions, passages, tokens]. Passage 0 is the positive.
        end: logits [questions, passages, tokens].
        relevance: logits [questions, passages].
        in_passage: whether a token belongs to the passage's text, [questions, passages, tokens].
        first: first token of the answer in the positive, [questions].
        last: last token of the answer in the positive, [questions].

    """
    span = _position_loss(start, in_passage, first) + _position_loss(end, in_passage, last)
    target = first.new_zeros(first.shape)
    return span / 2, cross_entropy(relevance, target)


def refusing_losses(
    logits: Logits, in_passage: Tensor, first: Tensor, last: Tensor, is_answered: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns span and relevance loss, where "no answer" competes with the logit 0.

    So logits are comparable between questions, too. The target of a question that no passage
    answers is "no answer" (Clark and Gardner 2018, section 3.3).

    Args:
        logits: start and end [questions, passages, tokens] and relevance [questions, passages].
        in_passage: whether a token belongs to the passage's text, [questions, passages, tokens].
        first: first token of the answer in passage 0, [questions].
        last: last token of the answer in passage 0, [questions].
        is_answered: whether passage 0 answers the question, [questions].

    """
    start, end, relevance = logits
    span = _position_or_no_answer_loss(start, in_passage, first, is_answered)
    span = span + _position_or_no_answer_loss(end, in_passage, last, is_answered)
    return span / 2, _choice_or_no_answer_loss(relevance, torch.zeros_like(first), is_answered)


def absolute_relevance_loss(relevance: Tensor, is_answered: Tensor | None = None) -> Tensor:
    """Returns the binary cross entropy of relevance, a mean over questions.

    `relevance` are logits [questions, passages]. Passage 0 is relevant, unless `is_answered` says
    otherwise, and the others are not. Passage 0 has the same weight as all others together.
    """
    target = torch.zeros_like(relevance)
    target[:, 0] = 1 if is_answered is None else is_answered.to(target.dtype)
    weight = torch.full_like(relevance, 0.5 / max(relevance.shape[1] - 1, 1))
    weight[:, 0] = 0.5
    total = binary_cross_entropy_with_logits(relevance, target, weight, reduction="sum")
    return total / relevance.shape[0]


def imitation_loss(student: Logits, teacher: Logits, in_passage: Tensor) -> Tensor:
    """Returns the divergence of a student's logits from its teacher's, a mean over questions.

    The teacher's probabilities are the target (Hinton et al. 2015). The logits have one row for
    each of [questions * passages] sequences. Starts and ends are normalised over all passages of a
    question, as in `reading_losses`.
    """
    questions, passages, _ = in_passage.shape
    relevances = (each.view(questions, passages) for each in (student[2], teacher[2]))
    return _span_divergence(student, teacher, in_passage) + divergence(*relevances)


def span_imitation_loss(student: Logits, teacher: Logits, in_passage: Tensor) -> Tensor:
    """Returns the divergence of a student's spans in the positive, a mean over questions.

    Ignores the ranking of passages, which a student may learn better than its teacher. The
    arguments are the same as of `imitation_loss`.
    """
    passages = in_passage.shape[1]
    student_spans, teacher_spans = (
        [each[::passages] for each in logits] for logits in (student, teacher)
    )
    return _span_divergence(student_spans, teacher_spans, in_passage[:, :1])


def states_distance(student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean squared difference of states, relative to the variance of `teacher`.

    States are [batch, tokens, width]. Only tokens in `mask` count.
    """
    attended = mask.bool()
    target = teacher[attended].float()
    return (student[attended].float() - target).square().mean() / target.var()


def divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """Returns the mean Kullback-Leibler divergence of logits [rows, choices]."""
    return kl_div(
        student.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean", log_target=True
    )


def _span_divergence(
    student: Sequence[Tensor], teacher: Sequence[Tensor], in_passage: Tensor
) -> Tensor:
    outside = ~in_passage.flatten(1)
    shape = outside.shape[0], -1
    pairs = zip(student[:2], teacher[:2], strict=True)
    divergences = [
        divergence(*(logits.reshape(shape).masked_fill(outside, _MASKED) for logits in pair))
        for pair in pairs
    ]
    return torch.stack(divergences).mean()


def _position_loss(logits: Tensor, in_passage: Tensor, target: Tensor) -> Tensor:
    """Returns the mean of two losses: one within the positive, one over all passages."""
    masked = logits.masked_fill(~in_passage, _MASKED)
    in_positive = cross_entropy(masked[:, 0], target)
    return (in_positive + cross_entropy(masked.flatten(1), target)) / 2


def _position_or_no_answer_loss(
    logits: Tensor, in_passage: Tensor, target: Tensor, is_answered: Tensor
) -> Tensor:
    """Returns the mean of two losses: within passage 0, and over all passages and "no answer"."""
    masked = logits.masked_fill(~in_passage, _MASKED)
    in_positive = cross_entropy(masked[:, 0], target, reduction="none") * is_answered
    in_positive = in_positive.sum() / is_answered.sum().clamp(min=1)
    return (in_positive + _choice_or_no_answer_loss(masked.flatten(1), target, is_answered)) / 2


def _choice_or_no_answer_loss(logits: Tensor, target: Tensor, is_answered: Tensor) -> Tensor:
    """Returns the cross entropy of choices [questions, choices] and "no answer" with logit 0."""
    choices = torch.cat([logits, torch.zeros_like(logits[:, :1])], 1)
    return cross_entropy(choices, torch.where(is_answered, target, logits.shape[1]))
