"""Writes to an index: passages that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from winnow.domain.passage import Passage

if TYPE_CHECKING:  # clients need no arrays: `client/pyproject.toml`
    import numpy as np
    from numpy.typing import NDArray

    from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage with all that is derived from its text."""

    passage: Passage
    title_ids: tuple[int, ...]
    tokens: Tokens
    """Of the text."""
    vector: NDArray[np.float32]
    """[dimension], of norm one."""


@dataclass(frozen=True, slots=True)
class Write:
    """A put or a deletion of the passage with this id."""

    id: str
    version: int | None = None
    """A write with a lower version than the stored one changes nothing; None: the last one counts.
    """
    put: EncodedPassage | None = None
    """What is stored; None deletes."""


class Outcome(Enum):
    """What became of a write. All are durable."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    """The same was stored before, or there was nothing to delete."""
    OUTDATED = "outdated"
    """A later version was stored before."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write, and where the shard's log stood then."""

    outcome: Outcome
    sequence: int
    """Of the write if it was stored; else of the last one before it."""
    log_id: str = field(default="", compare=False)
    """Names the log that `sequence` counts in; empty if it is not named."""
