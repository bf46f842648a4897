"""The two networks of a split reader, as plain arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import ReaderEntry, SplitReaderEntry
from winnow.inference.stop_signal import StopSignal
from winnow.reading.lower_layers import LowerLayers
from winnow.text.tokenizer import SpecialTokens

WIDTH = 6
SPECIAL = SpecialTokens(101, 102)
APART = SplitReaderEntry(lower="lower.onnx", width=WIDTH, passage_tokens=64, passage_position=64)
ENTRY = ReaderEntry(
    file="reader.onnx",
    max_tokens=128,
    window_overlap=8,
    token_types=(0, 1),
    max_answer_tokens=10,
    precision="int8",
    apart=APART,
)


class LowerSession:
    """Returns states that depend on a token, its position and its segment."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        ids, segments = inputs["input_ids"], inputs["token_type_ids"]
        self.runs.append(ids[0].tolist())
        places = np.arange(ids.shape[1]) + 64 * segments
        turned = np.arange(1, WIDTH + 1)
        states = np.sin(ids[..., None] * turned / 7 + places[..., None] / 11)
        return [states.astype(np.float32)]


class UpperSession:
    """Returns logits that depend on the passage's states and on the sum of the question's."""

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        asked = inputs["question_states"].sum(dtype=np.float32)
        told = inputs["passage_levels"].astype(np.float32) * inputs["passage_scales"]
        start, end = told[..., 0] + asked, told[..., 1] - asked
        return [start, end, told.sum((1, 2)) + asked]


def lower(session: LowerSession | None = None, fingerprint: str = "f" * 16) -> LowerLayers:
    return LowerLayers(session or LowerSession(), SPECIAL, ENTRY, APART, fingerprint=fingerprint)
