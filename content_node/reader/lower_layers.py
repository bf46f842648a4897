"""The lower layers of a split reader: questions and passages to states, each by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import ReaderEntry, SplitReaderEntry
from winnow.content_node.reader.model import windows
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.states.passage_states import PassageStates, joined, rounded
from winnow.errors import ArtefactError
from winnow.inference.runtime import PLAIN, InferenceOptions, open_session
from winnow.inference.session import Session
from winnow.inference.stop import Stop
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.text.tokenizer import SpecialTokens

STATES_OUTPUTS = ["states"]


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """`title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    place: int
    """Where in `ids` the passage begins."""
    first: int
    """The passage token at this place."""
    length: int
    """Number of passage tokens in this window."""


class LowerLayers:
    """The network of the lower layers. Safe to use from several threads."""

    def __init__(
        self,
        session: Session,
        special: SpecialTokens,
        entry: ReaderEntry,
        apart: SplitReaderEntry,
        *,
        fingerprint: str,
    ) -> None:
        """`fingerprint` names these layers, and how passages are prepared for them."""
        self._session, self._special = session, special
        self._entry, self._apart = entry, apart
        self.fingerprint = fingerprint

    @property
    def width(self) -> int:
        """Values of a state."""
        return self._apart.width

    def question(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Computes the states [1, tokens + 2, width] of a question without special tokens."""
        return self._run([self._special.cls, *ids, self._special.sep], 0, None)

    def passage(self, window: PassageWindow, stop: Stop | None = None) -> PassageStates:
        """Computes the states of one window; raises StoppedError once `stop` is set."""
        return rounded(self._run(window.ids, 1, stop)[0])

    def states(self, stored: StoredPassage, stop: Stop | None = None) -> PassageStates:
        """Computes the states of all windows of a passage, one behind the other."""
        return joined([self.passage(window, stop) for window in self.windows(stored)])

    def tokens(self, stored: StoredPassage) -> int:
        """Returns how many states a passage has, one for each token of its windows."""
        return sum(len(window.ids) for window in self.windows(stored))

    def windows(self, stored: StoredPassage) -> list[PassageWindow]:
        """Returns the windows that cover all of a passage, for any question."""
        text = stored.tokens.ids
        head = [*stored.title_ids[:MAX_TITLE_TOKENS], self._special.sep]
        room = self._apart.passage_tokens - len(head) - 1
        overlap = min(self._entry.window_overlap, room // 2)
        return [
            PassageWindow(
                [*head, *text[first:end], self._special.sep], len(head), first, end - first
            )
            for first, end in windows(len(text), room, overlap)
        ]

    def _run(self, ids: list[int], segment: int, stop: Stop | None) -> NDArray[np.float32]:
        own = np.array([ids], np.int64)
        segments = np.full_like(own, self._entry.token_types[segment])
        inputs = {"input_ids": own, "token_type_ids": segments}
        states: NDArray[np.float32] = self._session.run(inputs, stop)[0]
        return states


def open_lower_layers(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN
) -> LowerLayers:
    """Opens the lower layers of a bundle's reader.

    Raises:
        ArtefactError: they cannot be opened, or the reader is not a split reader.

    """
    entry = bundle.manifest.reader
    if entry.apart is None:
        raise ArtefactError(
            f"{bundle.directory} has no states of passages: its reader sees question and passage "
            "together in every layer"
        )
    path = bundle.directory / entry.apart.lower
    session = open_session(path, STATES_OUTPUTS, entry.precision, options)
    fingerprint = bundle.manifest.lower_fingerprint
    return LowerLayers(session, special, entry, entry.apart, fingerprint=fingerprint)
