"""Reads the labels and texts that a head is trained on, and holds some texts out.

Held-out texts decide when training stops, and calibrate the head.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.data import DataError
from models.heads.rows import OUTSIDE, Row, read_rows
from models.heads.settings import HeadJob
from models.heads.states import EncodedTexts, encode_texts
from winnow.bundle import Bundle
from winnow.heads.manifest import MAX_LABELS, Kind
from winnow.quoting import many, quoted

_SHOWN_LABELS = 5
"""Maximum number of labels in a warning."""


def collect_labels(rows: Sequence[Row], kind: Kind, out_of_scope: str) -> tuple[str, ...]:
    """Returns the sorted labels of `rows`, without `out_of_scope`.

    Token heads get `O` first, then `B-` and `I-` of every entity type.

    Raises:
        DataError: there are too few or too many labels.

    """
    found = {label for row in rows for label in row.labels}
    if kind is Kind.TOKEN:
        names = sorted({label[2:] for label in found} - {""})
        labels = [OUTSIDE, *(f"{side}-{name}" for name in names for side in "BI")]
        min_labels, content = 3, "no label but O"
    else:
        labels = sorted(found - {out_of_scope})
        min_labels, content = 2, f"only the label {quoted(labels[0])}" if labels else "no label"
    if len(labels) < min_labels:
        raise DataError(f"the texts have {content}: a head needs two or more labels")
    if len(labels) > MAX_LABELS:
        raise DataError(f"{len(labels)} labels are more than {MAX_LABELS}: merge some labels")
    return tuple(labels)


def unknown_label_warning(
    rows: Sequence[Row], labels: Sequence[str], out_of_scope: str, source: object
) -> str:
    """Returns a warning about rows whose labels the training texts lack, or an empty string.

    No head can predict such a label, so these rows count as wrong.
    """
    known = {*labels, out_of_scope}
    wrong = [row for row in rows if not known.issuperset(row.labels)]
    if not wrong:
        return ""
    unknown = sorted({label for row in wrong for label in row.labels} - known)
    more = f" and {len(unknown) - _SHOWN_LABELS} more" if len(unknown) > _SHOWN_LABELS else ""
    shown = ", ".join(map(quoted, unknown[:_SHOWN_LABELS]))
    return (
        f"{source}: {len(wrong)} of {many(len(rows), 'text')} with labels that the training texts "
        f"lack, counted as wrong: {shown}{more}"
    )


def hold_out(groups: Sequence[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Holds out about `share` of the rows of every group. Every group keeps a training row.

    `groups` has the group of each row, such as its label. Returns the indices of training rows and
    of held-out rows.
    """
    generator = random.Random(seed)
    members: defaultdict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    training: list[int] = []
    held_out: list[int] = []
    owed = 0.0
    for _, indices in sorted(members.items()):
        generator.shuffle(indices)
        # carries the remainder over to the next group, or rare groups would never be held out
        owed += len(indices) * share
        count = min(int(owed), len(indices) - 1)
        owed -= count
        held_out += indices[:count]
        training += indices[count:]
    return sorted(training), sorted(held_out)


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Labelled texts with their states."""

    rows: Sequence[Row]
    encoded: EncodedTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadTask:
    """The labels and texts that a head learns."""

    kind: Kind
    labels: tuple[str, ...]
    multi_label: bool
    out_of_scope: str
    """Label of texts that none of `labels` fits; empty if heads of this kind have none."""
    training: LabelledTexts
    held_out: LabelledTexts
    test: LabelledTexts | None

    @property
    def learns_out_of_scope(self) -> bool:
        """Whether some training texts are out of scope."""
        return any(self.out_of_scope in row.labels for row in self.training.rows)

    @property
    def width(self) -> int:
        """Number of values of a state."""
        return self.training.encoded.width


def read_head_task(
    job: HeadJob, bundle: Bundle, states_cache: Path, warn: Callable[[str], None]
) -> HeadTask:
    """Reads the labelled texts of a job, encodes them and collects their labels.

    If the job names no validation file, a part of the training texts is held out.

    Args:
        job: the job of training a head, which names the files.
        bundle: the bundle whose encoder encodes the texts.
        states_cache: directory where the encoded texts are kept for later jobs.
        warn: called with a warning if a file has labels that the training texts lack.

    Raises:
        DataError: a file is missing or invalid, or the files do not fit each other.

    """

    def encode(rows: Sequence[Row], progress_label: str) -> LabelledTexts:
        texts = [row.text for row in rows]
        return LabelledTexts(rows, encode_texts(texts, bundle, states_cache, progress_label))

    rows = read_rows(job.data, job.kind, job.fields)
    extra = {
        path: read_rows(path, job.kind, job.fields)
        for path in (job.validation, job.test)
        if path is not None
    }
    single_label = job.kind is Kind.SEQUENCE and not job.fields.multi_label
    out_of_scope = job.out_of_scope if single_label else ""
    labels = collect_labels(rows, job.kind, out_of_scope)
    for path, extra_rows in extra.items():
        if warning := unknown_label_warning(extra_rows, labels, out_of_scope, path):
            warn(warning)
    if job.validation is None:
        training, held_out = _split_rows(job, rows, single_label)
    else:
        training, held_out = rows, extra[job.validation]
    if single_label and not any(row.labels[0] in labels for row in held_out):
        raise DataError(
            "every held-out text is out of scope, or has a label that the training texts lack: "
            "calibration needs held-out texts with known labels"
        )
    return HeadTask(
        kind=job.kind,
        labels=labels,
        multi_label=job.fields.multi_label,
        out_of_scope=out_of_scope,
        training=encode(training, "encode texts"),
        held_out=encode(held_out, "encode held-out texts"),
        test=encode(extra[job.test], "encode test texts") if job.test else None,
    )


def _split_rows(
    job: HeadJob, rows: Sequence[Row], single_label: bool
) -> tuple[list[Row], list[Row]]:
    """Returns training rows and held-out rows, with about equal shares of every label."""
    groups = [row.labels[0] if single_label else "" for row in rows]
    training, held_out = hold_out(groups, job.plan.held_out, job.plan.seed)
    if not held_out:
        raise DataError(
            f"{job.data} has {many(len(rows), 'text')}, too few to hold any out: add "
            "texts, or set --validation to a file of held-out texts"
        )
    return [rows[index] for index in training], [rows[index] for index in held_out]
