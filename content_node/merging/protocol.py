"""The result of a merge, as the merge process tells it to the node: a line of JSON."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A generation that was written and verified."""

    directory: str
    sequence: int
    """The last write that the generation holds."""
    passages: int
    rows: int
    """All rows, those without a passage included."""
    without_states: str = ""
    """Why passages have no precomputed states; empty if all have some, or none is to have any."""


@dataclass(frozen=True, slots=True)
class MergeFailed:
    """A merge that wrote no generation."""

    reason: str


MergeResult = Merged | MergeFailed
_KINDS: dict[str, type[Merged] | type[MergeFailed]] = {"merged": Merged, "failed": MergeFailed}


def to_line(result: MergeResult) -> str:
    """The result as one line, with its end."""
    (kind,) = (name for name, each in _KINDS.items() if isinstance(result, each))
    return json.dumps({kind: asdict(result)}) + "\n"


def of_line(line: str) -> MergeResult | None:
    """The result in a line; None if the line is something else."""
    try:
        ((kind, content),) = json.loads(line).items()
        return _KINDS[kind](**content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
