"""Trains an encoder in large batches, with in-batch and hard negatives.

Each passage of a batch is a negative for the other questions of the batch (in-batch negatives,
Karpukhin et al. 2020, section 3.2). Hard negatives are passages that the encoder retrieves by
mistake.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.network.architecture import Encoder
from models.packed.encoding import body_states, mean_vectors
from models.packed.mined import MinedQuestions
from models.packed.tokens import PassageTokens, QuestionTokens
from models.training.loop import autocast

SCALE = 20.0
"""Inverse temperature of the softmax over cosines, as all-MiniLM-L6-v2 was trained."""
_TOKENS = 160
"""Longest passage, in tokens."""
_NEGATIVES, _AMONG = 2, 24
"""Number of hard negatives of each question, and of the first negatives from which they are drawn.
"""


class LargeBatchTask:
    """Computes the encoder's loss over batches of mined questions."""

    def __init__(
        self,
        *,
        encoder: Encoder,
        passages: PassageTokens,
        questions: QuestionTokens,
        mined: MinedQuestions,
        batch: int,
    ) -> None:
        self.network, self._passages, self._questions = encoder, passages, questions
        self._mined, self._batch = mined, batch

    def steps(self) -> Iterator[Callable[[], dict[str, Tensor]]]:
        """Yields training steps without end. Each pass over the questions has a random order."""
        for part in self._mined.batches(self._batch):
            yield partial(self.losses, part)

    def losses(self, part: MinedQuestions) -> dict[str, Tensor]:
        """Returns the cross entropy of each question's passage among all passages of the batch."""
        rows = torch.cat([part.gold, part.draw_negatives(_NEGATIVES, _AMONG).flatten()])
        rows, columns = torch.unique(rows, return_inverse=True)
        sequences = self._passages.encoder_sequences(rows, _TOKENS)
        question_sequences = self._questions.sequences(part.numbers)
        with autocast(rows.device.type):
            passage_states = body_states(self.network.body, sequences.ids, sequences.mask)[-1]
            question_states = body_states(
                self.network.body, question_sequences.ids, question_sequences.mask
            )[-1]
        vectors, questions = (
            mean_vectors(passage_states, sequences.mask),
            mean_vectors(question_states, question_sequences.mask),
        )
        scores = questions @ vectors.T * SCALE
        target = columns[: len(part)]
        return {"retrieval": cross_entropy(scores, target)}
