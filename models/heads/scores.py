"""How right labels are. Pure; everything in percent."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from models.heads.alignment import Entity


def accuracy(said: Sequence[object], right: Sequence[object]) -> float:
    """How many are the same."""
    return 100 * sum(s == r for s, r in zip(said, right, strict=True)) / max(len(right), 1)


def entity_scores(
    said: Sequence[Sequence[Entity]], right: Sequence[Sequence[Entity]]
) -> dict[str, float]:
    """Precision, recall and F1 of entities of all texts together: characters and label must be
    the same (Tjong Kim Sang and De Meulder, 2003, CoNLL-2003).
    """
    return overlap([set(each) for each in said], [set(each) for each in right], "entity_")


def label_scores(
    said: Sequence[AbstractSet[object]], right: Sequence[AbstractSet[object]]
) -> dict[str, float]:
    """Precision, recall and F1 of the labels of all texts together."""
    return overlap(said, right, "label_")


def overlap(
    said: Sequence[AbstractSet[object]], right: Sequence[AbstractSet[object]], prefix: str
) -> dict[str, float]:
    """Precision, recall and F1, micro-averaged; 0 where there is nothing to divide by."""
    both = sum(len(s & r) for s, r in zip(said, right, strict=True))
    precision = 100 * both / max(sum(map(len, said)), 1)
    recall = 100 * both / max(sum(map(len, right)), 1)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}f1": f1}
