"""What came of one question at one point, kept as JSON lines so that a run can go on.

A line that was torn by an interruption is dropped; its question is asked again.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from winnow.cli.outputs import writing
from winnow.cli.questions import AskedQuestion

_DIGEST = 8
"""Bytes."""


class MeasurementKey(NamedTuple):
    """What need not be measured again: a question at a point; same index, bundle and flags."""

    point: str
    questions: str
    number: int
    asked: str


@dataclass(frozen=True, slots=True)
class JudgedReply:
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
    """Passages read, also those that were read ahead and then not needed."""
    failed: bool = False
    error: str = ""
    """Why it failed: status, colon, words."""
    asked: str = ""
    """See `digest`."""
    needed: int | None = None
    """Passages that the answers rest on; None if the server does not say."""

    @property
    def key(self) -> MeasurementKey:
        """What it is the outcome of."""
        return MeasurementKey(self.point, self.questions, self.number, self.asked)


def digest(asked: AskedQuestion, about: str) -> str:
    """Of a question and its answers; `about` names the index, the bundle and its flags."""
    parts = json.dumps([asked.question, asked.answers, about])
    return hashlib.blake2b(parts.encode(), digest_size=_DIGEST).hexdigest()


def load(path: Path) -> list[JudgedReply]:
    """What `append` wrote, of each key the last; nothing if there is no file."""
    if not path.is_file():
        return []
    found: dict[MeasurementKey, JudgedReply] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            outcome = JudgedReply(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[outcome.key] = outcome
    return list(found.values())


def append(path: Path, outcomes: Iterable[JudgedReply]) -> None:
    """Adds outcomes to a file.

    Raises:
        WinnowError: it cannot be written.

    """
    lines = "".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
    with writing(path), path.open("ab") as file:
        if file.tell() and not _ends_a_line(path):
            lines = "\n" + lines  # what was torn takes no other line with it
        file.write(lines.encode())


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"
