"""Encodes texts as unit vectors; also returns token states and token vectors.

Knows the token sequences that the encoder expects. By default each run has one text, so that its
vector does not depend on other texts; `encode_batch` runs several.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.domain.question import QuestionTokens
from winnow.errors import ArtefactError
from winnow.inference.inner_output import extension_with_output
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.inference.runtime import open_session
from winnow.inference.session import Outputs, Session, model_inputs, padded_inputs
from winnow.late_interaction import extension
from winnow.late_interaction.levels import quantise_passage, quantise_question
from winnow.text.tokenizer import SpecialTokens

Vector = NDArray[np.float32]
States = NDArray[np.float16]
_TYPICAL_TOKENS = 20
"""Number of tokens, with special tokens, of the input that compares runtimes."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionEncoding:
    """The outputs of one run for a question."""

    vector: Vector
    states: States | None
    """Token states [tokens + 2, width]; None if the model has no such output."""
    tokens: QuestionTokens | None
    """Token vectors; None if the model has no such output."""


class Encoder:
    """A sentence encoder, which turns token ids into a vector [dimension] with norm 1."""

    def __init__(
        self,
        session: Session,
        special: SpecialTokens,
        dimension: int,
        *,
        token_vectors: bool = False,
    ) -> None:
        """`token_vectors`: whether the last two outputs are token vectors and their weights."""
        self._session, self._special, self.dimension = session, special, dimension
        self._token_vectors = token_vectors

    def question(self, ids: Sequence[int]) -> Vector:
        """Encodes a question; `ids` are its tokens without special tokens."""
        return self.with_states(ids)[0]

    def with_states(self, ids: Sequence[int]) -> tuple[Vector, States | None]:
        """Encodes a question; also returns its token states [tokens + 2, width].

        The states are None if the model has no such output.
        """
        encoding = self.encode_question(ids)
        return encoding.vector, encoding.states

    def encode_question(self, ids: Sequence[int]) -> QuestionEncoding:
        """Encodes a question; also returns its token states and token vectors."""
        return self.encode_batch([ids])[0]

    def encode_batch(self, texts: Sequence[Sequence[int]]) -> list[QuestionEncoding]:
        """Encodes several texts in one run, padded to the longest.

        A single text has no padding, and its vector depends on nothing else.
        """
        sequences = [[self._special.cls, *ids, self._special.sep] for ids in texts]
        outputs = self._session.run(padded_inputs(sequences))
        states = self._states(outputs)
        return [
            QuestionEncoding(
                outputs[0][row],
                None if states is None else states[row, : len(sequence)],
                self._question_tokens(outputs, row, len(sequence)),
            )
            for row, sequence in enumerate(sequences)
        ]

    def passage(self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]) -> Vector:
        """Encodes a passage; `title` and `text` are tokens without special tokens.

        `types` are the token type ids of title and text.
        """
        vector: Vector = self._run_passage(title, text, types)[0][0]
        return vector

    def passage_with_tokens(
        self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]
    ) -> tuple[Vector, NDArray[np.int8] | None]:
        """Encodes a passage; also returns the levels of its token vectors, [tokens + 3, values].

        The levels are None if the model has no token vectors. The arguments are those of `passage`.
        """
        outputs = self._run_passage(title, text, types)
        levels = quantise_passage(outputs[-2][0]) if self._token_vectors else None
        return outputs[0][0], levels

    def passage_tokens(
        self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]
    ) -> NDArray[np.int8]:
        """Returns the levels of a passage's token vectors, [tokens + 3, values].

        The arguments are those of `passage`. The model must have token vectors.
        """
        return quantise_passage(self._run_passage(title, text, types)[-2][0])

    def _run_passage(
        self, title: Sequence[int], text: Sequence[int], types: tuple[int, int]
    ) -> Outputs:
        head = [self._special.cls, *title, self._special.sep]
        tail = [*text, self._special.sep]
        ids, type_ids = head + tail, [types[0]] * len(head) + [types[1]] * len(tail)
        return self._session.run(model_inputs(ids, type_ids))

    def _question_tokens(self, outputs: Outputs, row: int, tokens: int) -> QuestionTokens | None:
        """Returns the token vectors of a text in a run; None without these outputs."""
        if not self._token_vectors:
            return None
        vectors, weights = outputs[-2][row, :tokens], outputs[-1][row, :tokens]
        return QuestionTokens(quantise_question(vectors), weights)

    def _states(self, outputs: Outputs) -> States | None:
        """Returns the token states of a run, padded as its inputs; None without this output."""
        if len(outputs) <= 1 + 2 * self._token_vectors:
            return None
        # float16 as in messages: takes half the memory, and local and remote heads get equal states
        return outputs[1].astype(np.float16)


def open_question_encoder(
    bundle: Bundle,
    special: SpecialTokens,
    options: InferenceOptions = PLAIN,
    states: bool = False,
    token_vectors: bool = False,
) -> Encoder:
    """Opens the question encoder.

    With `states`, the encoder also returns token states. With `token_vectors`, it returns token
    vectors if the bundle has late interaction.

    Raises ArtefactError if the model does not match the manifest.
    """
    entry = bundle.manifest.encoder
    states_output = entry.states if states else ""
    if states and not states_output:
        raise ArtefactError(
            f"{bundle.directory} cannot serve heads: its manifest names no tensor for token states"
        )
    nodes = bundle.late_interaction if token_vectors else b""
    vectors = [extension.VECTORS, extension.WEIGHTS] if nodes else []
    outputs = ["embedding", *filter(None, [states_output]), *vectors]
    tokens = min(_TYPICAL_TOKENS, entry.max_question_tokens)
    session = open_session(
        bundle.question_encoder,
        outputs,
        entry.effective_question_precision,
        options,
        extension_with_output(states_output) + nodes,
        sample_inputs=padded_inputs([[special.cls] * tokens]),
    )
    encoder = Encoder(session, special, entry.dimension, token_vectors=bool(nodes))
    return _check_dimension(encoder)


def open_passage_encoder(
    bundle: Bundle,
    special: SpecialTokens,
    options: InferenceOptions = PLAIN,
    token_vectors: bool = False,
) -> Encoder:
    """Opens the passage encoder.

    With `token_vectors`, it returns token vectors if the bundle has late interaction.

    Raises ArtefactError if the model does not match the manifest.
    """
    entry = bundle.manifest.encoder
    nodes = bundle.late_interaction if token_vectors else b""
    outputs = ["embedding", *([extension.VECTORS, extension.WEIGHTS] if nodes else [])]
    path, precision = bundle.passage_encoder, entry.precision
    session = open_session(path, outputs, precision, options, nodes)
    encoder = Encoder(session, special, entry.dimension, token_vectors=bool(nodes))
    return _check_dimension(encoder)


def _check_dimension(encoder: Encoder) -> Encoder:
    width = len(encoder.question([]))
    if width != encoder.dimension:
        raise ArtefactError(
            f"the encoder returns {width} values, but its manifest says {encoder.dimension}: "
            "build the bundle again"
        )
    return encoder
