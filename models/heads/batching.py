"""States of several texts as one tensor."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.heads.states import Encoded

_TOGETHER = 32
"""Batches whose texts are sorted by length, so that little is padding."""

Places = NDArray[np.int64]


def batches(
    places: Places, lengths: NDArray[np.int64], size: int, chance: np.random.Generator
) -> Iterator[Places]:
    """Every place once, in batches of texts of about one length, in an order of chance."""
    order = chance.permutation(places)
    found = []
    for begin in range(0, len(order), size * _TOGETHER):
        part = order[begin : begin + size * _TOGETHER]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[at : at + size] for at in range(0, len(part), size)]
    chance.shuffle(found)
    yield from found


def padded(encoded: Encoded, places: Sequence[int] | Places) -> tuple[Tensor, Tensor]:
    """States float32 [batch, tokens, width], and which of them are tokens, bool."""
    each = [encoded.of(int(place)) for place in places]
    longest = max(map(len, each))
    states = np.zeros((len(each), longest, encoded.width), dtype=np.float32)
    mask = np.zeros((len(each), longest), dtype=np.bool_)
    for row, found in enumerate(each):
        states[row, : len(found)] = found
        mask[row, : len(found)] = True
    return torch.from_numpy(states), torch.from_numpy(mask)
