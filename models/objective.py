"""What the reader is trained for.

DPR's objective (Karpukhin et al. 2020, section 6.1): the relevance of the positive among the
passages of one question, and the span in the positive. The span's softmax runs over all passages
of the question (the shared normalisation of Clark and Gardner 2018), so that span logits of
different passages can be compared when answers are merged. Pure functions of tensors.
"""

from torch import Tensor
from torch.nn.functional import cross_entropy

_MASKED = -1e4


def loss(
    start: Tensor, end: Tensor, relevance: Tensor, inside: Tensor, first: Tensor, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Span and relevance loss, each a mean over questions.

    `start`, `end` [questions, passages, tokens] and `relevance` [questions, passages] are logits,
    the positive being passage 0; `inside` [questions, passages, tokens] is true on passage tokens;
    `first` and `last` [questions] are token positions of the answer in the positive.
    """
    span = _place(start, inside, first) + _place(end, inside, last)
    target = first.new_zeros(first.shape)
    return span / 2, cross_entropy(relevance, target)


def _place(logits: Tensor, inside: Tensor, target: Tensor) -> Tensor:
    masked = logits.masked_fill(~inside, _MASKED)
    alone = cross_entropy(masked[:, 0], target)
    return (alone + cross_entropy(masked.flatten(1), target)) / 2
