"""Joins the passages of a document to its text. Pure."""

from collections.abc import Iterable
from operator import itemgetter

from winnow.client import Passage
from winnow.domain.source import source_of

_BREAK = "\n\n"
"""Stands for text between two passages that the index lacks."""


def join_passages(passages: Iterable[Passage]) -> str:
    """Returns the text of the document that was cut into these passages.

    Passages that overlap are joined without repetition. Passages without offsets follow in their
    order, after the others.
    """
    placed: list[tuple[int, str]] = []
    others: list[str] = []
    for each in passages:
        source = source_of(each.metadata)
        if source is None or source.start is None:
            others.append(each.text)
        else:
            placed.append((source.start, each.text))
    text, end = "", 0
    for start, own in sorted(placed, key=itemgetter(0)):
        new = own[max(end - start, 0) :]
        text += f"{_BREAK if text and start > end else ''}{new}"
        end = max(end, start + len(own))
    return _BREAK.join(filter(None, (text, *others)))
