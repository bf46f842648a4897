"""Runs the models of a step in the calling thread.

Sessions use the same options as the services: one thread, no spinning, no arena.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.cli.ladder.making import encoder_file, head_file
from winnow.cli.ladder.steps import LadderStep
from winnow.cli.ladder.texts import Ids
from winnow.inference.onnx import OnnxSession
from winnow.inference.session import PaddedSession, Session, model_inputs
from winnow.policy.byte_bounded_lru import ByteBoundedLru

_CLS, _SEP = 101, 102
States = NDArray[np.float16]


class LadderStepModel:
    """The encoder, heads and cache of a step."""

    def __init__(self, directory: Path, step: LadderStep, entries: int = 0) -> None:
        """`entries`: capacity of the cache, in encodings; 0 for no cache."""
        outputs = ["states"] if step.heads else ["logits"]
        session = OnnxSession(encoder_file(directory, step.shape, step.precision), outputs)
        self._encoder: Session = PaddedSession(session, step.pad_to) if step.pad_to else session
        file = head_file(directory, step.shape)
        self._heads = [OnnxSession(file, ["logits"]) for _ in range(step.heads)]
        # every entry counts as 1: the lengths of texts do not matter here
        self._cache = ByteBoundedLru[Ids, States](entries)
        self.hits = 0
        """Texts whose encoding was in the cache."""

    def predict(self, ids: Ids) -> list[int]:
        """Predicts the best label of each head, or of the classifier."""
        if not self._heads:
            return [int(self._encode(ids).argmax())]
        states = self.states(ids).astype(np.float32)
        return [int(head.run({"states": states})[0].argmax()) for head in self._heads]

    def states(self, ids: Ids) -> States:
        """The encoder's states of a text's tokens, from the cache if they are there."""
        if (cached := self._cache.get(ids)) is not None:
            self.hits += 1
            return cached
        states: States = self._encode(ids)[0].astype(np.float16)
        self._cache.put(ids, states, 1)
        return states

    def _encode(self, ids: Ids) -> NDArray[np.float32]:
        sequence = [_CLS, *ids, _SEP]
        return self._encoder.run(model_inputs(sequence, [0] * len(sequence)))[0]
