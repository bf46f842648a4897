"""What a merge tells the node that started it: lines of JSON on its standard output.

Whatever else it says, such as a stack, is kept as its last words.
"""

import json
from dataclasses import asdict, dataclass

_LAST_WORDS = 20
"""Lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A generation that was written and verified."""

    directory: str
    sequence: int
    """The last write that it holds."""
    passages: int
    rows: int
    """Also those that hold nothing."""
    without_states: str = ""
    """Why passages of a shard with states have none; empty if all have, or none is to have any."""


@dataclass(frozen=True, slots=True)
class MergeFailed:
    """Why there is no generation."""

    reason: str


@dataclass(frozen=True, slots=True)
class MergeStage:
    """What a merge does now."""

    name: str


Said = Merged | MergeFailed | MergeStage
_KINDS: dict[str, type[Merged] | type[MergeFailed] | type[MergeStage]] = {
    "merged": Merged,
    "failed": MergeFailed,
    "stage": MergeStage,
}


def to_line(said: Said) -> str:
    """One line, with its end."""
    (kind,) = (name for name, each in _KINDS.items() if isinstance(said, each))
    return json.dumps({kind: asdict(said)}) + "\n"


def of_line(line: str) -> Said | None:
    """What a line says; None if it is none of these."""
    try:
        ((kind, content),) = json.loads(line).items()
        return _KINDS[kind](**content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Heard:
    """What was said so far."""

    def __init__(self) -> None:
        self.result: Merged | MergeFailed | None = None
        self._others: list[str] = []

    def line(self, line: str) -> MergeStage | None:
        """Takes a line in; returns the stage if one begins."""
        said = of_line(line)
        if isinstance(said, MergeStage):
            return said
        if said is None:
            self._others = [*self._others, line.rstrip()][-_LAST_WORDS:]
        else:
            self.result = said
        return None

    @property
    def last_words(self) -> str:
        """The last lines that were nothing else, each after a line feed."""
        return "".join(f"\n{line}" for line in self._others)
