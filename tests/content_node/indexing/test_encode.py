"""Encoding a build: what is stored when, and what an interruption loses."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manual_clock import ManualClock
from numpy.typing import NDArray

from winnow.content_node.indexing.engine import encode_pending
from winnow.content_node.indexing.staging import Staging
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.passages.encoding import TokenisedPut
from winnow.text.tokenizer import Tokens

PASSAGES = 12


class FakeEncoder:
    """Encodes by the number of the passage, until it is interrupted."""

    def __init__(self, interrupted_at: int = -1) -> None:
        self.interrupted_at = interrupted_at

    def encode_with_tokens(
        self, title: Sequence[int], text: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int8] | None]:
        if text[0] == self.interrupted_at:
            raise KeyboardInterrupt
        return np.array([text[0]], np.float32), None


@pytest.fixture
def staging(tmp_path: Path) -> Iterator[Staging]:
    made = Staging(tmp_path / "staging.sqlite")
    for number in range(PASSAGES):
        put = Put(Passage(str(number), "", "word"))
        tokenised = TokenisedPut(put, Tokens((), ()), Tokens((number,), ((0, 4),)))
        assert made.add(tokenised.write())
    made.record(staged=True)
    yield made
    made.close()


def encode(staging: Staging, encoder: FakeEncoder, clock: Any) -> list[int]:
    """The numbers of passages that were stored at once."""
    stored: list[int] = []
    encode_pending(staging, encoder, 1, stored.append, clock)  # type: ignore[arg-type]
    return stored


def test_vectors_are_stored_every_two_seconds(staging: Staging) -> None:
    """A kill loses no more, however slow the machine is."""
    looked = count()
    assert encode(staging, FakeEncoder(), lambda: next(looked) * 0.8) == [3, 3, 3, 3]
    assert staging.counts() == (PASSAGES, PASSAGES)


def test_passages_that_are_encoded_in_no_time_are_stored_together(staging: Staging) -> None:
    assert encode(staging, FakeEncoder(), ManualClock()) == [PASSAGES]


def test_an_interruption_keeps_every_vector_that_came_before_it(staging: Staging) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode(staging, FakeEncoder(interrupted_at=7), ManualClock())
    assert staging.counts() == (PASSAGES, 7)
    assert encode(staging, FakeEncoder(), ManualClock()) == [PASSAGES - 7]
