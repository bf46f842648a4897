"""Training objectives of heads: the loss in a step, and the score on held-out texts."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from models.heads.entities import (
    accuracy,
    entity_scores,
    gold_entities,
    label_pieces,
    label_scores,
    predicted_entities,
)
from models.heads.network import Network, SequenceNetwork, TokenNetwork
from models.heads.settings import HeadPlan
from models.heads.states import Indices, pad_states
from models.heads.task import HeadTask, LabelledTexts
from winnow.heads.labels import Logits
from winnow.heads.manifest import Kind
from winnow.heads.spans import best_path

_IGNORED = -100
"""Target that PyTorch's cross entropy leaves out."""
_UNKNOWN_LABEL = -1
"""Target of a held-out text with a label that the training texts lack. No prediction equals it."""
_TEXTS_PER_BATCH = 256
"""Number of texts in a batch without gradients."""
_TOKEN_HIDDEN = 128
_BIASES = np.arange(-1.0, 3.01, 0.25)


class HeadObjective(Protocol):
    """Training objective of a head."""

    @property
    def network(self) -> Network:
        """The network that is trained."""

    def loss(self, states: Tensor, mask: Tensor, indices: Indices) -> Tensor:
        """Returns the loss of the training texts with these indices."""

    def score(self) -> float:
        """Returns the score of the network on held-out texts, in percent."""

    def tune_biases(self) -> None:
        """Fits biases to the held-out texts after training."""


def new_objective(task: HeadTask, plan: HeadPlan) -> HeadObjective:
    """Returns a new objective for the task's kind of head, with an untrained network."""
    if task.kind is Kind.TOKEN:
        return TokenObjective(task, plan)
    return SequenceObjective(task, plan)


class SequenceObjective:
    """Objective of a head that labels whole texts."""

    def __init__(self, task: HeadTask, plan: HeadPlan) -> None:
        self._task, self._plan = task, plan
        self.network = SequenceNetwork(
            width=task.width,
            labels=len(task.labels),
            queries=plan.queries,
            hidden=plan.hidden,
            dropout=plan.dropout,
            spread=task.learns_out_of_scope,
        )
        self._training_targets = self._targets(task.training)

    def loss(self, states: Tensor, mask: Tensor, indices: Indices) -> Tensor:
        """Returns the label-smoothed cross entropy, or with `multi_label` the binary one."""
        logits, targets = self.network(states, mask), self._training_targets[indices]
        if self._task.multi_label:
            return nn.functional.binary_cross_entropy_with_logits(logits, targets)
        smoothing = self._plan.smoothing
        return nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)

    def score(self) -> float:
        """Returns the accuracy, or the F1 of all labels together with `multi_label`."""
        held_out, labels = self._task.held_out, self._task.labels
        logits = torch.from_numpy(np.stack(compute_logits(self.network, held_out)))
        if not self._task.multi_label:
            return accuracy(logits.argmax(1).tolist(), self._targets(held_out).tolist())
        predicted = [{labels[each] for each in np.flatnonzero(row > 0)} for row in logits.numpy()]
        return label_scores(predicted, [set(row.labels) for row in held_out.rows])["label_f1"]

    def tune_biases(self) -> None:
        """Does nothing: thresholds are calibrated after quantisation."""

    def _targets(self, texts: LabelledTexts) -> Tensor:
        """Returns label indices [texts], or with `multi_label` zeros and ones [texts, labels]."""
        indices = {label: index for index, label in enumerate(self._task.labels)}
        indices[self._task.out_of_scope] = len(self._task.labels)
        if not self._task.multi_label:
            return torch.tensor([indices.get(row.labels[0], _UNKNOWN_LABEL) for row in texts.rows])
        targets = torch.zeros(len(texts.rows), len(self._task.labels))
        for text, row in enumerate(texts.rows):
            targets[text, [indices[label] for label in row.labels]] = 1
        return targets


class TokenObjective:
    """Objective of a head that gives every word piece a BIO label."""

    def __init__(self, task: HeadTask, plan: HeadPlan) -> None:
        self._task = task
        indices = {label: index for index, label in enumerate(task.labels)}
        self.network = TokenNetwork(task.width, len(task.labels), _TOKEN_HIDDEN, plan.dropout)
        encoded = task.training.encoded
        self._training_targets = [
            [indices[label] for label in label_pieces(encoded.pieces(text), row.words, row.labels)]
            for text, row in enumerate(task.training.rows)
        ]
        self._held_out_entities = gold_entities(task.held_out.rows)

    def loss(self, states: Tensor, mask: Tensor, indices: Indices) -> Tensor:
        """Returns the cross entropy of the word pieces."""
        targets = torch.full(mask.shape, _IGNORED)
        for row, text in enumerate(indices):
            labels = self._training_targets[int(text)]
            targets[row, 1 : 1 + len(labels)] = torch.tensor(labels)  # after [CLS]
        logits = self.network(states, mask).transpose(1, 2)
        return nn.functional.cross_entropy(logits, targets, ignore_index=_IGNORED)

    def score(self) -> float:
        """Returns the F1 of entities."""
        return self._f1(compute_logits(self.network, self._task.held_out), 0.0)

    def tune_biases(self) -> None:
        """Sets the bias of label O to the value with the best F1.

        Without tuning, the head misses rare entities.
        """
        logits = compute_logits(self.network, self._task.held_out)
        best = max(_BIASES, key=lambda bias: self._f1(logits, float(bias)))
        with torch.no_grad():
            self.network.output.bias[0] -= float(best)

    def _f1(self, logits: Sequence[Logits], bias: float) -> float:
        """Returns the F1 of entities after `bias` is subtracted from the logits of label O."""
        held_out, labels = self._task.held_out, self._task.labels
        predicted = []
        for text, (row, text_logits) in enumerate(zip(held_out.rows, logits, strict=True)):
            pieces = held_out.encoded.pieces(text)
            biased = text_logits[1:-1].copy()
            biased[:, 0] -= bias
            path = best_path(biased, labels) if pieces else []
            predicted.append(predicted_entities(row.text, pieces, [labels[each] for each in path]))
        return entity_scores(predicted, self._held_out_entities)["entity_f1"]


@torch.no_grad()
def compute_logits(network: Network, texts: LabelledTexts) -> list[Logits]:
    """Returns the logits of every text, [labels] or [tokens + 2, labels]."""
    network.eval()
    lengths = texts.encoded.lengths
    order = np.argsort(lengths, kind="stable")
    by_text: dict[int, Logits] = {}
    for begin in range(0, len(order), _TEXTS_PER_BATCH):
        indices = order[begin : begin + _TEXTS_PER_BATCH]
        logits = network(*pad_states(texts.encoded, indices)).numpy()
        for text, text_logits in zip(indices.tolist(), logits, strict=True):
            by_text[text] = text_logits[: lengths[text]] if text_logits.ndim > 1 else text_logits
    return [by_text[text] for text in range(len(by_text))]
