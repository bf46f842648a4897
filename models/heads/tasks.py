"""Loss of a head in a step, and its score on held-out texts, for each kind of head."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from models.heads.entities import (
    accuracy,
    entity_scores,
    found_entities,
    label_pieces,
    label_scores,
    right_entities,
)
from models.heads.network import Network, SequenceNetwork, TokenNetwork
from models.heads.problem import Part, Problem
from models.heads.settings import HeadPlan
from models.heads.states import Places, padded
from winnow.heads.labels import Logits
from winnow.heads.manifest import Kind
from winnow.heads.spans import best_path

_IGNORED = -100
"""Target that PyTorch's cross entropy leaves out."""
_FOREIGN = -1
"""Target of a held-out text whose label is not in the training texts: no prediction equals it."""
_AT_ONCE = 256
"""Texts that are measured together."""
_TOKEN_HIDDEN = 128
_BIASES = np.arange(-1.0, 3.01, 0.25)


class Task(Protocol):
    """Something for a head to learn."""

    @property
    def network(self) -> Network:
        """The network that is trained."""

    def loss(self, states: Tensor, mask: Tensor, places: Places) -> Tensor:
        """Returns the loss of the training texts at `places`."""

    def score(self) -> float:
        """Returns the score of the network on held-out texts, in percent."""

    def settle(self) -> None:
        """Fits further values to the held-out texts once training has ended."""


def task_of(problem: Problem, plan: HeadPlan) -> Task:
    """Returns the task of a kind of head, with a new network."""
    if problem.kind is Kind.TOKEN:
        return TokenTask(problem, plan)
    return SequenceTask(problem, plan)


class SequenceTask:
    """One label a text, or several."""

    def __init__(self, problem: Problem, plan: HeadPlan) -> None:
        self._problem, self._plan = problem, plan
        self.network = SequenceNetwork(
            width=problem.width,
            labels=len(problem.labels),
            queries=plan.queries,
            hidden=plan.hidden,
            dropout=plan.dropout,
            spread=problem.learns_out_of_scope,
        )
        self._right = self._targets(problem.learnt)

    def loss(self, states: Tensor, mask: Tensor, places: Places) -> Tensor:
        """Returns cross entropy with smoothed labels; of each label by itself if there may be
        several.
        """
        logits, right = self.network(states, mask), self._right[places]
        if self._problem.multi_label:
            return nn.functional.binary_cross_entropy_with_logits(logits, right)
        smoothing = self._plan.smoothing
        return nn.functional.cross_entropy(logits, right, label_smoothing=smoothing)

    def score(self) -> float:
        """Accuracy, or the F1 of all labels together if there may be several."""
        held, labels = self._problem.held, self._problem.labels
        logits = torch.from_numpy(np.stack(run(self.network, held)))
        if not self._problem.multi_label:
            return accuracy(logits.argmax(1).tolist(), self._targets(held).tolist())
        predicted = [{labels[each] for each in np.flatnonzero(row > 0)} for row in logits.numpy()]
        return label_scores(predicted, [set(row.labels) for row in held.rows])["label_f1"]

    def settle(self) -> None:
        """Nothing: calibration comes after quantisation."""

    def _targets(self, part: Part) -> Tensor:
        labels = {label: place for place, label in enumerate(self._problem.labels)}
        labels[self._problem.out_of_scope] = len(self._problem.labels)
        if not self._problem.multi_label:
            return torch.tensor([labels.get(row.labels[0], _FOREIGN) for row in part.rows])
        right = torch.zeros(len(part.rows), len(self._problem.labels))
        for place, row in enumerate(part.rows):
            right[place, [labels[label] for label in row.labels]] = 1
        return right


class TokenTask:
    """One BIO label a word piece."""

    def __init__(self, problem: Problem, plan: HeadPlan) -> None:
        self._problem = problem
        labels = {label: place for place, label in enumerate(problem.labels)}
        self.network = TokenNetwork(problem.width, len(problem.labels), _TOKEN_HIDDEN, plan.dropout)
        encoded = problem.learnt.encoded
        self._right = [
            [labels[label] for label in label_pieces(encoded.pieces(place), row.words, row.labels)]
            for place, row in enumerate(problem.learnt.rows)
        ]
        self._entities = right_entities(problem.held.rows)

    def loss(self, states: Tensor, mask: Tensor, places: Places) -> Tensor:
        """Returns cross entropy of the pieces."""
        right = torch.full(mask.shape, _IGNORED)
        for row, place in enumerate(places):
            own = self._right[int(place)]
            right[row, 1 : 1 + len(own)] = torch.tensor(own)  # after [CLS]
        logits = self.network(states, mask).transpose(1, 2)
        return nn.functional.cross_entropy(logits, right, ignore_index=_IGNORED)

    def score(self) -> float:
        """F1 of entities."""
        return self._f1(run(self.network, self._problem.held), 0.0)

    def settle(self) -> None:
        """Moves the bias of O to where F1 is best: rare entities are found too seldom otherwise."""
        logits = run(self.network, self._problem.held)
        best = max(_BIASES, key=lambda bias: self._f1(logits, float(bias)))
        with torch.no_grad():
            self.network.output.bias[0] -= float(best)

    def _f1(self, logits: Sequence[Logits], bias: float) -> float:
        held, labels = self._problem.held, self._problem.labels
        predicted = []
        for place, (row, values) in enumerate(zip(held.rows, logits, strict=True)):
            pieces = held.encoded.pieces(place)
            moved = values[1:-1].copy()
            moved[:, 0] -= bias
            path = best_path(moved, labels) if pieces else []
            predicted.append(found_entities(row.text, pieces, [labels[each] for each in path]))
        return entity_scores(predicted, self._entities)["entity_f1"]


@torch.no_grad()
def run(network: Network, part: Part) -> list[Logits]:
    """Returns the logits of every text of a part, [labels] or [tokens + 2, labels]."""
    network.eval()
    lengths = part.encoded.lengths
    found: dict[int, Logits] = {}
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), _AT_ONCE):
        places = order[begin : begin + _AT_ONCE]
        logits = network(*padded(part.encoded, places)).numpy()
        for place, own in zip(places.tolist(), logits, strict=True):
            found[place] = own[: lengths[place]] if own.ndim > 1 else own
    return [found[place] for place in range(len(found))]
