"""Warming up: every length once, then timed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from manual_clock import ManualClock
from numpy.typing import NDArray
from short_warm_up import USUAL_LENGTHS

from winnow.bundle import Bundle
from winnow.inference.stop_signal import StopSignal
from winnow.reading import Reader, warmup
from winnow.reading.cross_encoder import CrossEncoder
from winnow.reading.warmup import warm_up
from winnow.text.tokenizer import Tokenizer


class Slow:
    """A model that takes three seconds for a length that it has not run yet, and one later."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.seen: set[int] = set()

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        length = inputs["input_ids"].shape[1]
        self.clock.advance(1.0 if length in self.seen else 3.0)
        self.seen.add(length)
        logits = np.zeros((1, length), np.float32)
        return [logits, logits, np.zeros(1, np.float32)]


def test_the_measured_pace_is_that_of_a_warm_reader(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, lengths in USUAL_LENGTHS.items():
        monkeypatch.setattr(warmup, name, lengths)
    clock = ManualClock()
    model = Slow(clock)
    special = Tokenizer(bundle.tokenizer).special
    whole = CrossEncoder(model, special, bundle.manifest.reader)
    reader = Reader(whole, bundle.manifest.score)
    assert warm_up(reader, clock) == 1.0
    assert len(model.seen) == 6
