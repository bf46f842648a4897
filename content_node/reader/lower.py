"""The lower layers of a reader: questions and passages to states, each by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import ApartEntry, ReaderEntry
from winnow.content_node.reader.windows import windows
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.states.states import States, joined, rounded
from winnow.errors import ArtefactError
from winnow.inference.runtime import PLAIN, InferenceOptions, open_session
from winnow.inference.session import Session
from winnow.inference.stop import Stop
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.text.tokenizer import SpecialTokens

OUTPUTS = ["states"]


@dataclass(frozen=True, slots=True)
class Half:
    """`title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    place: int
    """Where in `ids` the passage begins."""
    first: int
    """The passage token that stands there."""
    length: int
    """Passage tokens in this half."""


class Lower:
    """The lower layers. Safe to use from several threads."""

    def __init__(
        self,
        session: Session,
        special: SpecialTokens,
        entry: ReaderEntry,
        apart: ApartEntry,
        fingerprint: str,
    ) -> None:
        self._session, self._special = session, special
        self._entry, self._apart = entry, apart
        self.fingerprint = fingerprint
        """Names these layers, and how passages are prepared for them."""

    @property
    def width(self) -> int:
        """Values of a state."""
        return self._apart.width

    def question(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The states [1, tokens + 2, width] of a question without special tokens."""
        return self._run([self._special.cls, *ids, self._special.sep], 0, None)

    def passage(self, half: Half, stop: Stop | None = None) -> States:
        """The states of one window of a passage; raises StoppedError once `stop` is set."""
        return rounded(self._run(half.ids, 1, stop)[0])

    def states(self, stored: StoredPassage, stop: Stop | None = None) -> States:
        """The states of all windows of a passage, one behind the other."""
        return joined([self.passage(half, stop) for half in self.halves(stored)])

    def tokens(self, stored: StoredPassage) -> int:
        """How many tokens a passage has states of."""
        return sum(len(half.ids) for half in self.halves(stored))

    def halves(self, stored: StoredPassage) -> list[Half]:
        """The windows that cover all of a passage; they do not depend on any question."""
        text = stored.tokens.ids
        head = [*stored.title_ids[:MAX_TITLE_TOKENS], self._special.sep]
        room = self._apart.passage_tokens - len(head) - 1
        overlap = min(self._entry.window_overlap, room // 2)
        return [
            Half([*head, *text[first:end], self._special.sep], len(head), first, end - first)
            for first, end in windows(len(text), room, overlap)
        ]

    def _run(self, ids: list[int], segment: int, stop: Stop | None) -> NDArray[np.float32]:
        own = np.array([ids], np.int64)
        segments = np.full_like(own, self._entry.token_types[segment])
        inputs = {"input_ids": own, "token_type_ids": segments}
        states: NDArray[np.float32] = self._session.run(inputs, stop)[0]
        return states


def open_lower(bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN) -> Lower:
    """The lower layers of a bundle's reader; raises ArtefactError if they cannot be opened, or are
    not apart.
    """
    entry = bundle.manifest.reader
    if entry.apart is None:
        raise ArtefactError(
            f"{bundle.directory} has no states of passages: its reader sees question and passage "
            "together in every layer"
        )
    path = bundle.directory / entry.apart.lower
    session = open_session(path, OUTPUTS, entry.precision, options)
    return Lower(session, special, entry, entry.apart, bundle.manifest.lower_fingerprint)
