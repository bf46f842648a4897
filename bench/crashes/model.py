"""What a shard should hold: a plain dictionary. Pure."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

Draft = tuple[str, str | None, int | None]
"""An id, a text or None for a deletion, and a version."""


@dataclass(slots=True)
class Model:
    """Texts by id, with their versions; and the versions of deletions."""

    texts: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    tombstones: dict[str, int] = field(default_factory=dict)
    sequence: int = 0

    def apply(self, drafts: Sequence[Draft]) -> list[tuple[str, int]]:
        """Writes one after the other: what becomes of each, and the last write then."""
        return [self._apply(*draft) for draft in drafts]

    def after(self, drafts: Sequence[Draft]) -> "Model":
        """What would be there after more writes."""
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
