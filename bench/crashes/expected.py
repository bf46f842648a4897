"""The expected contents of a shard, kept in dictionaries and compared with the shard."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.synthetic import SyntheticEncoder

ENCODER = SyntheticEncoder(dimension=8, vocabulary=64)
NEAREST_COUNT = 5
"""Number of passages that a vector search returns."""
Draft = tuple[str, str | None, int | None]
"""Arguments of a write: id, text (None deletes the passage), and version (None for no version)."""


class MismatchError(Exception):
    """The shard differs from its expected contents."""


@dataclass(slots=True)
class ExpectedShard:
    """Expected passages of a shard: texts and versions by id, and versions of deletions by id."""

    texts: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    sequence: int = 0

    def apply(self, drafts: Sequence[Draft]) -> list[tuple[str, int]]:
        """Applies writes in order; returns the outcome and the sequence number of each."""
        return [self._apply(*draft) for draft in drafts]

    def with_writes(self, drafts: Sequence[Draft]) -> "ExpectedShard":
        """Returns a copy with the writes applied."""
        copy = deepcopy(self)
        copy.apply(drafts)
        return copy

    def _apply(self, identifier: str, text: str | None, version: int | None) -> tuple[str, int]:
        stored = self.texts.get(identifier)
        stored_version = stored[1] if stored else self.tombstones.get(identifier)
        if stored_version is not None and version is not None and stored_version > version:
            return "outdated", self.sequence
        unchanged = text == (stored[0] if stored else None)
        if unchanged and version in (None, stored_version):
            return "unchanged", self.sequence
        self.sequence += 1
        self.texts.pop(identifier, None)
        self.tombstones.pop(identifier, None)
        if text is not None:
            self.texts[identifier] = (text, version)
        elif (tombstone_version := stored_version if version is None else version) is not None:
            self.tombstones[identifier] = tombstone_version
        return "stored", self.sequence


def match_stored_calls(
    expected: ExpectedShard, unacknowledged: Sequence[Sequence[Draft]], dump: dict[str, Any]
) -> ExpectedShard:
    """Returns the expected contents, including the unacknowledged calls that the shard stored.

    The shard may have stored the first N `unacknowledged` calls, each as a whole, for any N.

    Raises:
        MismatchError: no N explains the contents of the shard.

    """
    texts, sequence = dump["texts"], dump["sequence"]
    for count in range(len(unacknowledged) + 1):
        found = expected.with_writes([draft for call in unacknowledged[:count] for draft in call])
        same_texts = texts == {name: text for name, (text, _) in found.texts.items()}
        if same_texts and sequence == found.sequence:
            return found
    acknowledged = {name: text for name, (text, _) in expected.texts.items()}
    lost = sorted(acknowledged.items() - texts.items())
    unexpected = sorted(texts.items() - acknowledged.items())
    raise MismatchError(
        f"the shard is at write {sequence}; the last acknowledged write is {expected.sequence}, "
        f"with {len(unacknowledged)} unacknowledged calls after it: "
        f"lost {lost[:5]}, unexpected {unexpected[:5]}"
    )


def check_search(found: dict[str, Any], expected: ExpectedShard, text: str) -> None:
    """Compares the results of a search for `text` with an exhaustive search.

    Raises:
        MismatchError: the search found other passages.

    """
    question = ENCODER.vector(text)

    def distance(each: str) -> float:
        return float(np.sum((ENCODER.vector(each) - question) ** 2))

    nearest = sorted((each for each, _ in expected.texts.values()), key=distance)[:NEAREST_COUNT]
    if found["near"] != nearest:
        raise MismatchError(f"vector search for {text!r} found {found['near']}, expected {nearest}")
    words = set(ENCODER.tokens(text))
    expected_ids = sorted(
        name for name, (each, _) in expected.texts.items() if words & set(ENCODER.tokens(each))
    )
    if found["words"] != expected_ids:
        raise MismatchError(
            f"word search for {text!r} found passages {found['words']}, expected {expected_ids}"
        )
