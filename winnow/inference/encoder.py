"""Encodes texts as unit vectors.

Knows the token sequences that the encoder expects. By default each run has one text, so that its
vector does not depend on other texts; `encode_batch` runs several.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.inference.runtime import open_session
from winnow.inference.session import Session, model_inputs, padded_inputs
from winnow.text.tokenizer import SpecialTokens

Vector = NDArray[np.float32]
States = NDArray[np.float16]
_TYPICAL_TOKENS = 20
"""Number of tokens, with special tokens, of the input that compares runtimes."""


class Encoder:
    """A sentence encoder, which turns token ids into a vector [dimension] with norm 1."""

    def __init__(self, session: Session, special: SpecialTokens, dimension: int) -> None:
        self._session, self._special, self.dimension = session, special, dimension

    def question(self, ids: Sequence[int]) -> Vector:
        """Encodes a question; `ids` are its tokens without special tokens."""
        return self.with_states(ids)[0]

    def with_states(self, ids: Sequence[int]) -> tuple[Vector, States | None]:
        """Encodes a question; also returns its token states [tokens + 2, width].

        The states are None if the model has no such output.
        """
        return self.encode_batch([ids])[0]

    def encode_batch(self, texts: Sequence[Sequence[int]]) -> list[tuple[Vector, States | None]]:
        """Encodes several texts in one run, padded to the longest; returns vectors and states.

        A single text has no padding, and its vector depends on nothing else.
        """
        sequences = [[self._special.cls, *ids, self._special.sep] for ids in texts]
        outputs = self._session.run(padded_inputs(sequences))
        # float16 as in messages: takes half the memory, and local and remote heads get equal states
        states = outputs[1].astype(np.float16) if len(outputs) > 1 else None
        return [
            (vector, None if states is None else states[row, : len(sequences[row])])
            for row, vector in enumerate(outputs[0])
        ]

    def passage(self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]) -> Vector:
        """Encodes a passage; `title` and `text` are tokens without special tokens.

        `types` are the token type ids of title and text.
        """
        head = [self._special.cls, *title, self._special.sep]
        tail = [*text, self._special.sep]
        return self._run(head + tail, [types[0]] * len(head) + [types[1]] * len(tail))

    def _run(self, ids: list[int], types: list[int]) -> Vector:
        vector: Vector = self._session.run(model_inputs(ids, types))[0][0]
        return vector


def open_question_encoder(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN, states: bool = False
) -> Encoder:
    """Opens the question encoder. With `states`, the encoder also returns token states.

    Raises ArtefactError if the model does not match the manifest.
    """
    entry = bundle.manifest.encoder
    states_output = entry.states if states else ""
    if states and not states_output:
        raise ArtefactError(
            f"{bundle.directory} cannot serve heads: its manifest names no tensor for token states"
        )
    outputs = ["embedding", *filter(None, [states_output])]
    tokens = min(_TYPICAL_TOKENS, entry.max_question_tokens)
    session = open_session(
        bundle.question_encoder,
        outputs,
        entry.effective_question_precision,
        options,
        states_output,
        sample_inputs=padded_inputs([[special.cls] * tokens]),
    )
    return _check_dimension(Encoder(session, special, entry.dimension))


def open_passage_encoder(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN
) -> Encoder:
    """Opens the passage encoder; raises ArtefactError if it does not match the manifest."""
    entry = bundle.manifest.encoder
    session = open_session(bundle.passage_encoder, ["embedding"], entry.precision, options)
    return _check_dimension(Encoder(session, special, entry.dimension))


def _check_dimension(encoder: Encoder) -> Encoder:
    width = len(encoder.question([]))
    if width != encoder.dimension:
        raise ArtefactError(
            f"the encoder returns {width} values, but its manifest says {encoder.dimension}: "
            "build the bundle again"
        )
    return encoder
