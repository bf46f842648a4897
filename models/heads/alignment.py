"""Labels of words as labels of word pieces. Pure.

Words and pieces are characters of one text, as [first, one past the last].
"""

from collections.abc import Sequence

from models.heads.rows import OUTSIDE

Spans = Sequence[tuple[int, int]]
Entity = tuple[int, int, str]
"""First character, one past the last, and the label."""


def label_pieces(pieces: Spans, words: Spans, labels: Sequence[str]) -> list[str]:
    """The label of each piece: of its word, `B-` only at the word's first piece."""
    found, place, began = [], 0, -1
    for start, _ in pieces:
        while place < len(words) - 1 and start >= words[place][1]:
            place += 1
        label = labels[place]
        if label.startswith("B-") and began == place:
            label = f"I-{label[2:]}"
        began = place
        found.append(label)
    return found


def entities(words: Spans, labels: Sequence[str]) -> list[Entity]:
    """The entities that BIO labels name; an `I-` that continues nothing begins one, as CoNLL's
    own script has it.
    """
    found: list[Entity] = []
    open_label = ""
    for (start, end), label in zip(words, labels, strict=True):
        name = "" if label == OUTSIDE else label[2:]
        if name and label.startswith("I-") and name == open_label:
            found[-1] = (found[-1][0], end, name)
        elif name:
            found.append((start, end, name))
        open_label = name
    return found
