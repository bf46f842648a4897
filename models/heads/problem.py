"""One training problem: the labels of a head, and texts with their states.

Some texts are held out, to stop early and to calibrate with. Knows no network.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.data import DataError
from models.heads.rows import OUTSIDE, Row, read_rows
from models.heads.settings import HeadJob
from models.heads.states import Encoded, encode
from winnow.bundle import Bundle
from winnow.heads.manifest import MAX_LABELS, Kind
from winnow.quoting import many, quoted

_NAMED = 5
"""Labels that an error names."""


def labels_of(rows: Sequence[Row], kind: Kind, out_of_scope: str) -> tuple[str, ...]:
    """Returns every label of `rows` but `out_of_scope`, in an order that never changes.

    Token heads get `O` first, and both `B-` and `I-` of each kind of entity.

    Raises:
        DataError: there are too few or too many to learn.

    """
    counts = Counter(label for row in rows for label in row.labels)
    if kind is Kind.TOKEN:
        names = sorted({label[2:] for label in counts} - {""})
        labels = [OUTSIDE, *(f"{side}-{name}" for name in names for side in "BI")]
        least, what = 3, "no token but O"
    else:
        labels = sorted(set(counts) - {out_of_scope})
        least, what = 2, f"one label only, {quoted(labels[0])}" if labels else "no label"
    if len(labels) < least:
        raise DataError(f"the texts have {what}: there is nothing to tell apart")
    if len(labels) > MAX_LABELS:
        raise DataError(f"{len(labels)} labels; at most {MAX_LABELS} are possible")
    return tuple(labels)


def foreign_labels(
    rows: Sequence[Row], labels: Sequence[str], out_of_scope: str, source: object
) -> str:
    """Returns a warning about rows with labels that the training data lacks, or an empty string.

    No head can predict such a label, so these rows count as wrong.
    """
    known = {*labels, out_of_scope}
    wrong = [row for row in rows if not known.issuperset(row.labels)]
    if not wrong:
        return ""
    foreign = sorted({label for row in wrong for label in row.labels} - known)
    more = f" and {len(foreign) - _NAMED} more" if len(foreign) > _NAMED else ""
    named = ", ".join(map(quoted, foreign[:_NAMED]))
    return (
        f"{source}: {len(wrong)} of {many(len(rows), 'text')} with labels that the training texts "
        f"lack, counted as wrong: {named}{more}"
    )


def hold_out(groups: Sequence[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Returns the rows to learn from and the held-out rows: about `share` of every group.

    `groups` has the group of each row, such as its label. One row of each stays to learn from.
    """
    generator = random.Random(seed)
    members: defaultdict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        members[group].append(place)
    learnt: list[int] = []
    held: list[int] = []
    owed = 0.0
    for _, places in sorted(members.items()):
        generator.shuffle(places)
        # what is owed is carried over, or rare groups would never be held out
        owed += len(places) * share
        count = min(int(owed), len(places) - 1)
        owed -= count
        held += places[:count]
        learnt += places[count:]
    return sorted(learnt), sorted(held)


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the texts: to learn from, held out, or to be tested on."""

    rows: Sequence[Row]
    encoded: Encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The labels and texts that a head learns."""

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


def read_problem(job: HeadJob, bundle: Bundle, kept: Path, say: Callable[[str], None]) -> Problem:
    """Reads the files and encodes their texts; `kept` is where states are kept.

    `say` prints a warning about texts with labels that the training texts lack.

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
        if warning := foreign_labels(found, labels, unknown, path):
            say(warning)
    learnt, held = _split(job, rows, extra)
    if scoped and not any(row.labels[0] in labels for row in held):
        raise DataError(
            "every held-out text is out of scope, or has a label that the training texts lack: "
            "others are needed to calibrate with"
        )
    return Problem(
        kind=job.kind,
        labels=labels,
        multi_label=job.fields.multi_label,
        out_of_scope=unknown,
        learnt=_part(learnt, bundle, kept, "encode texts"),
        held=_part(held, bundle, kept, "encode held-out texts"),
        test=_part(extra[job.test], bundle, kept, "encode test texts") if job.test else None,
    )


def _split(
    job: HeadJob, rows: Sequence[Row], extra: dict[Path, list[Row]]
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
