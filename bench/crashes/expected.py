"""What a shard should hold and find: a plain dictionary, compared with the shard."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.synthetic import SyntheticEncoder

ENCODER = SyntheticEncoder(dimension=8, vocabulary=64)
NEAREST = 5
"""Passages that a search by meaning returns."""
Draft = tuple[str, str | None, int | None]
"""A write: an id, a text or None for a deletion, and a version."""


class WrongError(Exception):
    """The shard differs from the dictionary."""


@dataclass(slots=True)
class Model:
    """Texts by id with their versions, and the versions of deletions."""

    texts: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    sequence: int = 0

    def apply(self, drafts: Sequence[Draft]) -> list[tuple[str, int]]:
        """Applies writes in order; returns the outcome and the sequence number of each."""
        return [self._apply(*draft) for draft in drafts]

    def after(self, drafts: Sequence[Draft]) -> "Model":
        """Returns a copy with more writes."""
        copy = deepcopy(self)
        copy.apply(drafts)
        return copy

    def _apply(self, identifier: str, text: str | None, version: int | None) -> tuple[str, int]:
        stored = self.texts.get(identifier)
        known = stored[1] if stored else self.tombstones.get(identifier)
        if known is not None and version is not None and known > version:
            return "outdated", self.sequence
        same = text == (stored[0] if stored else None)
        if same and version in (None, known):
            return "unchanged", self.sequence
        self.sequence += 1
        self.texts.pop(identifier, None)
        self.tombstones.pop(identifier, None)
        if text is not None:
            self.texts[identifier] = (text, version)
        elif (gone := known if version is None else version) is not None:
            self.tombstones[identifier] = gone
        return "stored", self.sequence


def survivor(model: Model, unknown: Sequence[Sequence[Draft]], dump: dict[str, Any]) -> Model:
    """Returns the dictionary with the unacknowledged calls that the shard stored.

    These are the first of `unknown`, each as a whole.

    Raises:
        WrongError: the shard holds something else.

    """
    texts, sequence = dump["texts"], dump["sequence"]
    for count in range(len(unknown) + 1):
        found = model.after([draft for call in unknown[:count] for draft in call])
        same = texts == {name: text for name, (text, _) in found.texts.items()}
        if same and sequence == found.sequence:
            return found
    acknowledged = {name: text for name, (text, _) in model.texts.items()}
    lost = sorted(acknowledged.items() - texts.items())
    more = sorted(texts.items() - acknowledged.items())
    raise WrongError(
        f"the shard is at write {sequence}, write {model.sequence} was acknowledged, and "
        f"{len(unknown)} calls were not: lost {lost[:5]}, more {more[:5]}"
    )


def expect_found(found: dict[str, Any], model: Model, text: str) -> None:
    """Compares what a search for `text` found with comparing all passages.

    Raises:
        WrongError: the search found other passages.

    """
    question = ENCODER.vector(text)

    def distance(each: str) -> float:
        return float(np.sum((ENCODER.vector(each) - question) ** 2))

    near = sorted((each for each, _ in model.texts.values()), key=distance)[:NEAREST]
    if found["near"] != near:
        raise WrongError(f"the nearest of {text!r} are {near}, found {found['near']}")
    words = set(ENCODER.tokens(text))
    expected = sorted(
        name for name, (each, _) in model.texts.items() if words & set(ENCODER.tokens(each))
    )
    if found["words"] != expected:
        raise WrongError(f"{expected} have a word of {text!r}, found {found['words']}")
