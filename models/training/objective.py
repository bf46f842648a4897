"""What the reader is trained for.

DPR's objective (Karpukhin et al. 2020, section 6.1): the relevance of the positive among the
passages of one question, and the span in the positive. The span's softmax runs over all passages
of the question (the shared normalisation of Clark and Gardner 2018), so that span logits of
different passages can be compared when answers are merged. Pure functions of tensors.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, kl_div

from models.network.architecture import Logits

_MASKED = -1e4


def loss(
    start: Tensor, end: Tensor, relevance: Tensor, inside: Tensor, first: Tensor, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns span and relevance loss, each a mean over questions.

    `start`, `end` [questions, passages, tokens] and `relevance` [questions, passages] are logits,
    the positive being passage 0; `inside` [questions, passages, tokens] is true on passage tokens;
    `first` and `last` [questions] are token positions of the answer in the positive.
    """
    span = _place(start, inside, first) + _place(end, inside, last)
    target = first.new_zeros(first.shape)
    return span / 2, cross_entropy(relevance, target)


def absolute(relevance: Tensor) -> Tensor:
    """Returns the loss of relevance as an absolute yes or no, a mean over questions.

    Of the logits [questions, passages], passage 0 answers and the others do not.

    Yes and no weigh as much as each other, however many negatives there are.
    """
    target = torch.zeros_like(relevance)
    target[:, 0] = 1
    weight = torch.full_like(relevance, 0.5 / max(relevance.shape[1] - 1, 1))
    weight[:, 0] = 0.5
    lost = binary_cross_entropy_with_logits(relevance, target, weight, reduction="sum")
    return lost / relevance.shape[0]


def imitation(student: Logits, teacher: Logits, inside: Tensor) -> Tensor:
    """Returns the divergence of a student's answers from its teacher's, a mean over questions.

    The teacher's probabilities are the target (Hinton et al. 2015).

    Both as `Reader` gives them, for [questions * passages] sequences; `inside` [questions,
    passages, tokens]. Starts and ends are compared over all passages of a question, as in `loss`.
    """
    questions, passages, _ = inside.shape
    relevances = (each.view(questions, passages) for each in (student[2], teacher[2]))
    return _spans_divergence(student, teacher, inside) + divergence(*relevances)


def span_imitation(student: Logits, teacher: Logits, inside: Tensor) -> Tensor:
    """Returns the divergence of a student's spans in the positive, a mean over questions.

    The ranking of passages is left out: a student may learn to rank better than its teacher does.
    Arguments as of `imitation`.
    """
    passages = inside.shape[1]
    own, model = ([each[::passages] for each in logits] for logits in (student, teacher))
    return _spans_divergence(own, model, inside[:, :1])


def states_distance(student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean squared difference of two [batch, tokens, width] states.

    It is over attended tokens, and relative to the variance of `teacher`.
    """
    kept = mask.bool()
    target = teacher[kept].float()
    return (student[kept].float() - target).square().mean() / target.var()


def divergence(student: Tensor, teacher: Tensor) -> Tensor:
    """Kullback-Leibler divergence of [rows, choices] logits from those of a teacher, a mean."""
    return kl_div(
        student.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean", log_target=True
    )


def _spans_divergence(
    student: Sequence[Tensor], teacher: Sequence[Tensor], inside: Tensor
) -> Tensor:
    outside = ~inside.flatten(1)
    shape = outside.shape[0], -1
    ends = zip(student[:2], teacher[:2], strict=True)
    apart = [
        divergence(*(logits.reshape(shape).masked_fill(outside, _MASKED) for logits in both))
        for both in ends
    ]
    return torch.stack(apart).mean()


def _place(logits: Tensor, inside: Tensor, target: Tensor) -> Tensor:
    masked = logits.masked_fill(~inside, _MASKED)
    alone = cross_entropy(masked[:, 0], target)
    return (alone + cross_entropy(masked.flatten(1), target)) / 2
