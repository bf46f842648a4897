"""The interfaces of a model that computes data of each passage, and of computed data."""

from typing import Protocol

from winnow.reading.states_kind import StatesKind
from winnow.reading.stored_passage import StoredPassage


class ReusableStates(Protocol):
    """Data of one kind that is already computed. Safe to use from several threads."""

    def packed(self, identifier: str, sequence: int) -> bytes:
        """Returns the data of a passage version in the format on disk; empty without data."""

    def size(self, identifier: str, sequence: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without data."""


class StatesModel(Protocol):
    """Computes data of one kind. Safe to use from several threads."""

    @property
    def kind(self) -> StatesKind: ...

    @property
    def fingerprint(self) -> str:
        """Identifies the model and its inputs."""

    @property
    def width(self) -> int:
        """Number of values of a token."""

    def count_tokens(self, stored: StoredPassage) -> int:
        """Counts the tokens of a passage that have data."""

    def packed(self, stored: StoredPassage) -> bytes:
        """Computes the data of a passage, in the format on disk."""
