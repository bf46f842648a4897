"""Examples to tensors: one step's questions, each with its positive and its negatives."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.training.examples import Encoded, Example, longest


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one step: `ids`, `mask`, `types` [questions * passages, tokens], `inside`
    [questions, passages, tokens], `first`, `last` [questions].
    """

    ids: Tensor
    mask: Tensor
    types: Tensor
    inside: Tensor
    first: Tensor
    last: Tensor

    @property
    def sequences(self) -> int:
        return int(self.ids.shape[0])

    def parts(self, most: int) -> Iterator[tuple["Batch", float]]:
        """The batch in parts of some questions, each with its share of the questions; at least
        one question, and at most `most` pairs of tokens that look at each other.
        """
        questions, passages, width = self.inside.shape
        some = max(most // (passages * width**2), 1)
        for first in range(0, questions, some):
            last = min(first + some, questions)
            yield self._between(first, last), (last - first) / questions

    def _between(self, first: int, last: int) -> "Batch":
        passages = self.inside.shape[1]
        rows = slice(first * passages, last * passages)
        width = int(self.mask[rows].sum(1).max())
        ids, mask, types = (each[rows, :width] for each in (self.ids, self.mask, self.types))
        inside = self.inside[first:last, :, :width]
        return Batch(ids, mask, types, inside, self.first[first:last], self.last[first:last])


def make_batch(
    encoded: Encoded, numbers: Sequence[int], negatives: int, seed: int, step: int
) -> Batch:
    """The batch of `numbers` at `step`, the same for the same arguments.

    Each question brings `negatives` passages drawn from its mined ones. A question with fewer
    repeats them; one with none, or without an answer on tokens, is left out. Whole passages come
    in steps of their own: one of them among cropped ones would pad all of them.
    """
    generator = random.Random(f"{seed}/{step}")
    most = longest(generator)
    rows: list[list[Example]] = []
    for number in numbers:
        positive = encoded.positive(number, most, generator)
        mined = encoded.asked[number].negatives
        if positive is None or not mined:
            continue
        drawn = generator.sample(mined, min(negatives, len(mined)))
        drawn += generator.choices(mined, k=negatives - len(drawn))
        rows.append([positive, *(encoded.negative(number, p, most, generator) for p in drawn)])
    return _tensors(rows)


def _tensors(rows: Sequence[Sequence[Example]]) -> Batch:
    flat = [example for row in rows for example in row]
    width = max(len(example.ids) for example in flat)
    ids = torch.zeros(len(flat), width, dtype=torch.long)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    inside = torch.zeros(len(flat), width, dtype=torch.bool)
    for place, example in enumerate(flat):
        length = len(example.ids)
        ids[place, :length] = torch.tensor(example.ids)
        types[place, :length] = torch.tensor(example.types)
        mask[place, :length] = 1
        inside[place, example.passage[0] : example.passage[1]] = True
    return Batch(
        ids,
        mask,
        types,
        inside.view(len(rows), -1, width),
        torch.tensor([row[0].start for row in rows]),
        torch.tensor([row[0].end for row in rows]),
    )
