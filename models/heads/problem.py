"""One training problem: texts with their states and what is right of each.

Knows what a label is in numbers, and how right what a head says is; knows no network.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.data.rows import DataError
from models.heads.labels import foreign_labels, labels_of
from models.heads.rows import Row, read_rows
from models.heads.settings import Job
from models.heads.splitting import hold_out
from models.heads.states import Encoded, encode
from winnow.bundle import Bundle
from winnow.heads.manifest import Kind
from winnow.quoting import many


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the texts: to learn from, held out, or to be tested on."""

    rows: Sequence[Row]
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class Problem:
    """What a head is to learn."""

    kind: Kind
    labels: tuple[str, ...]
    multi_label: bool
    out_of_scope: str
    """The label of texts that have none of `labels`; empty if a head of this kind has no such."""
    learnt: Part
    held: Part
    test: Part | None

    @property
    def learns_out_of_scope(self) -> bool:
        """Whether texts to learn from have none of the labels."""
        return any(self.out_of_scope in row.labels for row in self.learnt.rows)

    @property
    def width(self) -> int:
        """Values of a state."""
        return self.learnt.encoded.width


def read_problem(job: Job, bundle: Bundle, kept: Path, say: Callable[[str], None]) -> Problem:
    """Reads the files and encodes their texts; `kept` is where states are kept.

    `say` is told of texts with labels that the training texts lack.

    Raises:
        DataError: a file is not what it should be, or the files do not fit each other.

    """
    rows = read_rows(job.data, job.kind, job.fields)
    extra = {
        path: read_rows(path, job.kind, job.fields)
        for path in (job.validation, job.test)
        if path is not None
    }
    scoped = job.kind is Kind.SEQUENCE and not job.fields.multi_label
    unknown = job.out_of_scope if scoped else ""
    labels = labels_of(rows, job.kind, unknown)
    for path, found in extra.items():
        if told := foreign_labels(found, labels, unknown, path):
            say(told)
    learnt, held = _split(job, rows, extra)
    if scoped and not any(row.labels[0] in labels for row in held):
        raise DataError(
            "every held-out text is out of scope, or has a label that the training texts lack: "
            "others are needed to calibrate with"
        )
    return Problem(
        job.kind,
        labels,
        job.fields.multi_label,
        unknown,
        _part(learnt, bundle, kept, "encode texts"),
        _part(held, bundle, kept, "encode held-out texts"),
        _part(extra[job.test], bundle, kept, "encode test texts") if job.test else None,
    )


def _split(
    job: Job, rows: Sequence[Row], extra: dict[Path, list[Row]]
) -> tuple[Sequence[Row], Sequence[Row]]:
    if job.validation is not None:
        return rows, extra[job.validation]
    alike = job.kind is Kind.SEQUENCE and not job.fields.multi_label
    groups = [row.labels[0] if alike else "" for row in rows]
    learnt, held = hold_out(groups, job.plan.held_out, job.plan.seed)
    if not held:
        raise DataError(
            f"{job.data} has {many(len(rows), 'text')}, too few to hold any out: add "
            "texts, or give some with --validation"
        )
    return [rows[place] for place in learnt], [rows[place] for place in held]


def _part(rows: Sequence[Row], bundle: Bundle, kept: Path, what: str) -> Part:
    return Part(rows, encode([row.text for row in rows], bundle, kept, what))
