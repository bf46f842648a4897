"""Stores the judged replies of all points as JSON lines, so that a run can resume.

An incomplete line of an interrupted run is ignored, and its question is asked again.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from winnow.files.result_files import convert_write_errors
from winnow.labelled_questions import LabelledQuestion

_DIGEST_BYTES = 8


class MeasurementKey(NamedTuple):
    """Identifies a measurement: a question at a point. The fields are those of `JudgedReply`."""

    point: str
    questions: str
    number: int
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReply:
    """The accuracy and cost of a reply. Field names are keys of the JSON lines.

    A failed call has an accuracy of 0.
    """

    point: str
    questions: str
    """Name of the question file, without suffixes."""
    number: int
    """Index of the question in the file."""
    milliseconds: float
    exact_match: bool
    f1: float
    read: int
    """Passages read, including speculative reads."""
    failed: bool = False
    error: str = ""
    """Why the call failed, as `STATUS: message`; empty if it did not."""
    asked: str = ""
    """Digest of the question, its answers and the setup (`measurement_digest`)."""
    needed: int | None = None
    """Passages that the answers depend on; None from an old front node."""

    @property
    def key(self) -> MeasurementKey:
        """The measurement that the reply is from."""
        return MeasurementKey(self.point, self.questions, self.number, self.asked)


def measurement_digest(question: LabelledQuestion, setup: str) -> str:
    """A digest of a question, its answers and the setup: index, bundle and flags."""
    parts = json.dumps([question.question, question.answers, setup])
    return hashlib.blake2b(parts.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def load_replies(path: Path) -> list[JudgedReply]:
    """Reads the last reply of each measurement; returns none if there is no file."""
    if not path.is_file():
        return []
    replies: dict[MeasurementKey, JudgedReply] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            outcome = JudgedReply(**json.loads(line))
        except (ValueError, TypeError):
            continue
        replies[outcome.key] = outcome
    return list(replies.values())


def append_replies(path: Path, outcomes: Iterable[JudgedReply]) -> None:
    """Appends replies to a file. Raises WinnowError if the file cannot be written."""
    lines = "".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
    with convert_write_errors(path), path.open("ab") as file:
        if file.tell() and not _ends_a_line(path):
            lines = "\n" + lines  # end an incomplete line, which would spoil the first new one
        file.write(lines.encode())


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"
