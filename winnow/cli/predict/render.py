"""Predictions as a terminal or a pipe shows them. Pure: it turns values into printable lines."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from winnow.cli.output import MARK, harmless
from winnow.client import Entity, HeadPrediction, LabelScore

_MOST_LABELS = 5
_LABEL, _FIGURE, _LONGEST = 24, 6, 30


def heads_shown(
    text: str, heads: Sequence[HeadPrediction], width: int, plain: bool
) -> Iterator[Text]:
    """The prediction of each head for `text`, in `width` columns; `plain` has no styles."""
    for head in heads:
        yield Text.assemble(
            (harmless(head.head_id), "bold"),
            (f"  version {head.version}" if head.version else "", "dim"),
            ("  out of scope" if head.out_of_scope else "", "yellow"),
        )
        if head.failure:
            yield Text(f"  no prediction: {harmless(head.failure)}", style="yellow")
        yield from _labels(head.labels, width)
        if head.version and not head.labels:
            yield from _entities(text, head.entities, plain)


def _labels(labels: Sequence[LabelScore], width: int) -> Iterator[Text]:
    room = max(min(width - _LABEL - _FIGURE - 6, _LONGEST), 0)
    for each in labels[:_MOST_LABELS]:
        mark, style = ("✓", "bold green") if each.assigned else (" ", "dim")
        yield Text.assemble(
            (f"  {mark} {harmless(each.label).ljust(_LABEL)}", style),
            f"{each.score:{_FIGURE}.3f}  ",
            ("█" * round(each.score * room) or "▏", "cyan"),
        )


def _entities(text: str, entities: Sequence[Entity], plain: bool) -> Iterator[Text]:
    """The text with its entities marked, then each entity with its score."""
    if not entities:
        yield Text("  no entities", style="dim")
        return
    yield Text.assemble("  ", *_marked(harmless(text), entities, plain))
    for each in entities:
        yield Text.assemble(
            f"    {harmless(each.label).ljust(_LABEL)}",
            f"{each.score:{_FIGURE}.3f}  ",
            (harmless(each.text), "bold green"),
        )


def _marked(words: str, entities: Sequence[Entity], plain: bool) -> Iterator[str | tuple[str, str]]:
    mark, at = "**" if plain else "", 0
    for each in entities:
        yield words[at : each.start]
        yield (f"{mark}{words[each.start : each.end]}{mark}", "" if plain else MARK)
        at = each.end
    yield words[at:]
