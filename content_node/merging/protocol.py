"""The result of a merge, which the merge process prints for the node as a line of JSON."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A generation that was written and verified."""

    directory: str
    sequence: int
    """The number of the last write that the generation holds."""
    passages: int
    rows: int
    """Number of all rows, including those without a passage."""
    without_states: str = ""
    """Why passages lack precomputed states; empty if all have them, or the shard uses none."""


@dataclass(frozen=True, slots=True)
class MergeFailed:
    """A merge that wrote no generation."""

    reason: str


MergeResult = Merged | MergeFailed
_KINDS: dict[str, type[Merged] | type[MergeFailed]] = {"merged": Merged, "failed": MergeFailed}


def format_result(result: MergeResult) -> str:
    """Formats a result as a line of JSON, with a line feed."""
    (kind,) = (name for name, each in _KINDS.items() if isinstance(result, each))
    return json.dumps({kind: asdict(result)}) + "\n"


def parse_result(line: str) -> MergeResult | None:
    """Parses a line of output; returns None if it is not a result."""
    try:
        ((kind, content),) = json.loads(line).items()
        return _KINDS[kind](**content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
