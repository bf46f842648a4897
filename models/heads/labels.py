"""The labels of a head, and rows that have others. Pure."""

from collections import Counter
from collections.abc import Sequence

from models.data.rows import DataError
from models.heads.rows import OUTSIDE, Row
from winnow.heads.manifest import MOST_LABELS, Kind
from winnow.quoting import many, quoted

_NAMED = 5
"""Labels that an error names."""


def labels_of(rows: Sequence[Row], kind: Kind, out_of_scope: str) -> tuple[str, ...]:
    """Every label of `rows` but `out_of_scope`, in an order that never changes.

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
    if len(labels) > MOST_LABELS:
        raise DataError(f"{len(labels)} labels; at most {MOST_LABELS} are possible")
    return tuple(labels)


def foreign_labels(
    rows: Sequence[Row], labels: Sequence[str], out_of_scope: str, source: object
) -> str:
    """What is to be told of rows with a label that training lacks; empty if there are none.

    No head can say such a label, so that these rows count as wrong.
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
