"""Tests of steps that are split into parts: less memory and the same gradient."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from models.network.architecture import Reader, load_body
from models.training.examples import Batch
from models.training.loop import StepLosses
from models.training.reading_task import batch_losses


def batch_of(questions: int, passages: int, width: int) -> Batch:
    """Random tokens; the further back a question, the shorter its sequences."""
    generator = torch.Generator().manual_seed(1)
    rows = questions * passages
    ids = torch.randint(5, 40, (rows, width), generator=generator)
    lengths = torch.arange(rows).div(passages, rounding_mode="floor").neg() + width
    mask = (torch.arange(width) < lengths[:, None]).long()
    types = (torch.arange(width) >= 3).long() * mask
    in_passage = types.bool().view(questions, passages, width)
    place = torch.arange(questions) + 4
    return Batch(
        ids=ids * mask, mask=mask, types=types, in_passage=in_passage, first=place, last=place + 1
    )


@pytest.mark.parametrize("most", [1, 3 * 16**2 * 2, 10**9])
def test_the_gradients_of_the_parts_add_up_to_that_of_the_whole(
    tiny_weights: Path, most: int
) -> None:
    torch.manual_seed(0)
    whole, batch = Reader(load_body(tiny_weights)), batch_of(5, 3, 16)
    apart = copy.deepcopy(whole)

    def learnt(reader: Reader, of: Iterator[tuple[Batch, float]]) -> None:
        for part, share in of:
            said = reader(part.ids, part.mask, part.types)
            made = StepLosses(batch_losses(said, part), part.sequences).scaled(share)
            torch.stack(list(made.losses.values())).sum().backward()  # type: ignore[no-untyped-call]

    learnt(whole, iter([(batch, 1.0)]))
    learnt(apart, batch.parts(most))
    for one, other in zip(whole.parameters(), apart.parameters(), strict=True):
        if one.grad is not None and other.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-3)


def test_parts_are_within_the_limit_of_pairs_or_one_question() -> None:
    batch = batch_of(5, 3, 16)
    parts = [part for part, _ in batch.parts(3 * 16**2 * 2)]
    assert [len(part.first) for part in parts] == [2, 2, 1]
    assert [part.ids.shape[1] for part in parts] == [16, 14, 12]
    assert sum(share for _, share in batch.parts(1)) == pytest.approx(1)
    assert [len(part.first) for part, _ in batch.parts(1)] == [1] * 5
