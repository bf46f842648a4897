"""The lower layers of a split reader: compute the states of questions and passages separately."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.bundle.manifest import ReaderEntry, SplitReaderEntry
from winnow.errors import ArtefactError
from winnow.inference.options import PLAIN, InferenceOptions
from winnow.inference.runtime import open_session
from winnow.inference.session import Session
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.quoting import shortened
from winnow.reading.model import split_windows
from winnow.reading.passage_states import PassageStates, concatenate, quantise
from winnow.reading.states_kind import READER_STATES, StatesKind
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import SpecialTokens

STATES_OUTPUTS = ["states"]


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """Input of one run: `title [SEP] part of the passage [SEP]`."""

    ids: list[int]
    offset: int
    """Index in `ids` of the first passage token."""
    first: int
    """Index in the passage of the token at `offset`."""
    length: int
    """Number of passage tokens in this window."""
    tenant: str = field(default="", kw_only=True)
    """Tenant of the caller who sent the passage; see `StoredPassage`."""


class LowerLayers:
    """Runs the network of the lower layers. Safe to use from several threads."""

    def __init__(
        self,
        session: Session,
        special: SpecialTokens,
        entry: ReaderEntry,
        apart: SplitReaderEntry,
        *,
        fingerprint: str,
    ) -> None:
        """`fingerprint` identifies these layers and their passage windows."""
        self._session, self._special = session, special
        self._entry, self._apart = entry, apart
        self.fingerprint = fingerprint

    @property
    def kind(self) -> StatesKind:
        """The kind of data that a shard stores of these layers."""
        return READER_STATES

    @property
    def width(self) -> int:
        """Number of values per token state."""
        return self._apart.width

    def question_states(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Computes the states of a question, [1, tokens + 2, width]; adds its special tokens."""
        return self._run([self._special.cls, *ids, self._special.sep], 0, None)

    def window_states(self, window: PassageWindow, stop: StopSignal | None = None) -> PassageStates:
        """Computes the states of one window; raises StoppedError once `stop` is set."""
        return quantise(self.exact_window_states(window, stop))

    def exact_window_states(
        self, window: PassageWindow, stop: StopSignal | None = None
    ) -> NDArray[np.float32]:
        """Computes states without rounding, [tokens, width]; raises as `window_states`."""
        exact: NDArray[np.float32] = self._run(window.ids, 1, stop)[0]
        return exact

    def passage_states(self, stored: StoredPassage) -> PassageStates:
        """Computes the states of all windows of a passage, concatenated."""
        return concatenate([self.window_states(window) for window in self.windows(stored)])

    def packed(self, stored: StoredPassage) -> bytes:
        """Computes the states of a passage, in the format on disk.

        Raises ArtefactError if they are not finite, or not as wide as the bundle says.
        """
        states = self.passage_states(stored)
        if (found := states.levels.shape[1]) != self.width:
            raise ArtefactError(
                f"the reader returns states of {found} values, not {self.width}, although the "
                "bundle's manifest says so: use another bundle"
            )
        if not np.isfinite(states.scales).all():
            raise ArtefactError(
                f"the reader returns states of passage {shortened(stored.passage.id)} that are not "
                "finite numbers: use another bundle"
            )
        return states.packed()

    def count_tokens(self, stored: StoredPassage) -> int:
        """Counts the tokens of all windows of a passage, each of which has a state."""
        return sum(len(window.ids) for window in self.windows(stored))

    def windows(self, stored: StoredPassage) -> list[PassageWindow]:
        """Returns the windows that cover all of a passage, the same for every question."""
        text = stored.tokens.ids
        head = [*stored.title_ids[:MAX_TITLE_TOKENS], self._special.sep]
        return [
            PassageWindow(
                [*head, *text[first:end], self._special.sep],
                len(head),
                first,
                end - first,
                tenant=stored.tenant,
            )
            for first, end in self.window_ranges(stored.title_ids, len(text))
        ]

    def window_ranges(self, title: Sequence[int], tokens: int) -> list[tuple[int, int]]:
        """Returns the ranges of the windows of a passage with this title and `tokens` tokens."""
        head = len(title[:MAX_TITLE_TOKENS]) + 1
        room = self._apart.passage_tokens - head - 1
        return split_windows(tokens, room, min(self._entry.window_overlap, room // 2))

    def _run(self, ids: list[int], segment: int, stop: StopSignal | None) -> NDArray[np.float32]:
        input_ids = np.array([ids], np.int64)
        token_types = np.full_like(input_ids, self._entry.token_types[segment])
        inputs = {"input_ids": input_ids, "token_type_ids": token_types}
        states: NDArray[np.float32] = self._session.run(inputs, stop)[0]
        return states


def open_lower_layers(
    bundle: Bundle, special: SpecialTokens, options: InferenceOptions = PLAIN
) -> LowerLayers:
    """Opens the lower layers of a bundle's reader.

    Raises:
        ArtefactError: the model cannot be opened, or the reader is not a split reader.

    """
    entry = bundle.manifest.reader
    if entry.apart is None:
        raise ArtefactError(
            f"{bundle.directory} has no states of passages: its reader is a full cross-encoder, "
            "which reads question and passage together"
        )
    path = bundle.directory / entry.apart.lower
    session = open_session(path, STATES_OUTPUTS, entry.precision, options)
    fingerprint = bundle.manifest.lower_layers_fingerprint
    return LowerLayers(session, special, entry, entry.apart, fingerprint=fingerprint)
