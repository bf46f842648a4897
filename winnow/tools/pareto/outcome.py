"""What came of one question at one point, kept as JSON lines so that a run can go on.

A line that was torn by an interruption is dropped; its question is asked again.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """One reply, judged. A failed call has no match and no overlap."""

    point: str
    questions: str
    """The file the question is from, without its endings."""
    number: int
    """The question's place in it."""
    milliseconds: float
    exact_match: bool
    f1: float
    read: int
    """Passages read."""
    failed: bool = False


def load(path: Path) -> list[Outcome]:
    """What `append` wrote; nothing if there is no file."""
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(Outcome(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def append(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Adds outcomes to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
