"""Text to unit vectors.

Knows the sequences that the encoder expects; one text a run, so that a vector never depends on
its neighbours.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.errors import ArtefactError
from winnow.inference.runtime import PLAIN, InferenceOptions, open_session
from winnow.inference.session import Session, model_inputs, padded_inputs
from winnow.text.tokenizer import SpecialTokens

Vector = NDArray[np.float32]
States = NDArray[np.float16]
_USUAL = 20
"""Number of tokens, special ones included, at which runtimes are compared."""


class Encoder:
    """A sentence encoder: token ids to a vector [dimension] of norm one."""

    def __init__(self, session: Session, special: SpecialTokens, dimension: int) -> None:
        self._session, self._special, self.dimension = session, special, dimension

    def question(self, ids: Sequence[int]) -> Vector:
        """Encodes a question given without special tokens."""
        return self.with_states(ids)[0]

    def with_states(self, ids: Sequence[int]) -> tuple[Vector, States | None]:
        """Also the states [tokens + 2, width] of its tokens; None if the model gives none."""
        return self.many([ids])[0]

    def many(self, texts: Sequence[Sequence[int]]) -> list[tuple[Vector, States | None]]:
        """Vectors and states of several texts in one run, padded to the longest one.

        One text has no padding, and its vector depends on nothing else.
        """
        sequences = [[self._special.cls, *ids, self._special.sep] for ids in texts]
        outputs = self._session.run(padded_inputs(sequences))
        # float16, the format on the wire: half the memory, and heads give equal results in every
        # process
        states = outputs[1].astype(np.float16) if len(outputs) > 1 else None
        return [
            (vector, None if states is None else states[row, : len(sequences[row])])
            for row, vector in enumerate(outputs[0])
        ]

    def passage(self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]) -> Vector:
        """Encodes a passage given without special tokens; `types` are of title and text."""
        head = [self._special.cls, *title, self._special.sep]
        tail = [*text, self._special.sep]
        return self._run(head + tail, [types[0]] * len(head) + [types[1]] * len(tail))

    def _run(self, ids: list[int], types: list[int]) -> Vector:
        vector: Vector = self._session.run(model_inputs(ids, types))[0][0]
        return vector


def open_question_encoder(
    bundle: Bundle,
    special: SpecialTokens,
    options: InferenceOptions = PLAIN,
    states: bool = False,
) -> Encoder:
    """The encoder of questions; raises ArtefactError if it is not what the manifest says.

    With `states` it gives the states of tokens, too.
    """
    entry = bundle.manifest.encoder
    inner = entry.states if states else ""
    if states and not inner:
        raise ArtefactError(
            f"{bundle.directory} cannot serve heads: its manifest names no states of the encoder"
        )
    outputs = ["embedding", *filter(None, [inner])]
    tokens = min(_USUAL, entry.max_question_tokens)
    session = open_session(
        bundle.question_encoder,
        outputs,
        entry.effective_question_precision,
        options,
        inner,
        usual=padded_inputs([[special.cls] * tokens]),
    )
    return _checked(Encoder(session, special, entry.dimension))


def open_passage_encoder(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN
) -> Encoder:
    """The encoder of passages; raises ArtefactError if it is not what the manifest says."""
    entry = bundle.manifest.encoder
    session = open_session(bundle.passage_encoder, ["embedding"], entry.precision, options)
    return _checked(Encoder(session, special, entry.dimension))


def _checked(encoder: Encoder) -> Encoder:
    width = len(encoder.question([]))
    if width != encoder.dimension:
        raise ArtefactError(
            f"the encoder gives {width} values, its manifest says {encoder.dimension}"
        )
    return encoder
