"""The judged reply to each question at each point, kept as JSON lines so that a run can resume.

A line that an interruption cut short is dropped; its question is asked again.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from winnow.cli.questions import LabelledQuestion
from winnow.cli.result_files import write_errors

_DIGEST = 8
"""Bytes."""


class MeasurementKey(NamedTuple):
    """Names a measurement: a question at a point, with the index, bundle and flags."""

    point: str
    questions: str
    number: int
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReply:
    """One reply, judged. A failed call has no match and no overlap."""

    point: str
    questions: str
    """The file of the question, without its endings."""
    number: int
    """The question's place in the file."""
    milliseconds: float
    exact_match: bool
    f1: float
    read: int
    """Passages read; it counts those that were read ahead and not needed, too."""
    failed: bool = False
    error: str = ""
    """Why the call failed: status, colon, words."""
    asked: str = ""
    """Digest of the question, its answers and the setup, from `digest()`."""
    needed: int | None = None
    """Passages that the answers rest on; None if the server does not say."""

    @property
    def key(self) -> MeasurementKey:
        """What was measured."""
        return MeasurementKey(self.point, self.questions, self.number, self.asked)


def digest(asked: LabelledQuestion, circumstances: str) -> str:
    """A digest of a question, its answers, and of `circumstances`: index, bundle and flags."""
    parts = json.dumps([asked.question, asked.answers, circumstances])
    return hashlib.blake2b(parts.encode(), digest_size=_DIGEST).hexdigest()


def load(path: Path) -> list[JudgedReply]:
    """What `append` wrote, of each key the last one; nothing if there is no file."""
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
    """Adds outcomes to a file. Raises WinnowError if it cannot be written."""
    lines = "".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
    with write_errors(path), path.open("ab") as file:
        if file.tell() and not _ends_a_line(path):
            lines = "\n" + lines  # a line that was cut short must not spoil the next one
        file.write(lines.encode())


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"
