"""Renders predictions for a terminal or a pipe. Pure."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from winnow.cli.output import HIGHLIGHT, printable
from winnow.client import Entity, HeadPrediction, LabelScore

_MAX_LABELS = 5
_LABEL, _FIGURE, _MAX_BAR = 24, 6, 30
"""Widths of a label, a figure and the longest bar, in terminal columns."""


def render_predictions(
    text: str, heads: Sequence[HeadPrediction], width: int, plain: bool
) -> Iterator[Text]:
    """Renders the prediction of each head in `width` columns; without styles if `plain`."""
    for head in heads:
        yield Text.assemble(
            (printable(head.head_id), "bold"),
            (f"  version {head.version}" if head.version else "", "dim"),
            ("  out of scope" if head.out_of_scope else "", "yellow"),
        )
        if head.failure:
            yield Text(f"  no prediction: {printable(head.failure)}", style="yellow")
        yield from _labels(head.labels, width)
        if head.version and not head.labels:
            yield from _entities(text, head.entities, plain)


def _labels(labels: Sequence[LabelScore], width: int) -> Iterator[Text]:
    room = max(min(width - _LABEL - _FIGURE - 6, _MAX_BAR), 0)
    for each in labels[:_MAX_LABELS]:
        mark, style = ("✓", "bold green") if each.assigned else (" ", "dim")
        yield Text.assemble(
            (f"  {mark} {printable(each.label).ljust(_LABEL)}", style),
            f"{each.score:{_FIGURE}.3f}  ",
            ("█" * round(each.score * room) or "▏", "cyan"),
        )


def _entities(text: str, entities: Sequence[Entity], plain: bool) -> Iterator[Text]:
    """Renders the text with its entities highlighted, then each entity with its score."""
    if not entities:
        yield Text("  no entities", style="dim")
        return
    yield Text.assemble("  ", *_highlight(printable(text), entities, plain))
    for each in entities:
        yield Text.assemble(
            f"    {printable(each.label).ljust(_LABEL)}",
            f"{each.score:{_FIGURE}.3f}  ",
            (printable(each.text), "bold green"),
        )


def _highlight(
    words: str, entities: Sequence[Entity], plain: bool
) -> Iterator[str | tuple[str, str]]:
    mark, at = "**" if plain else "", 0
    for each in entities:
        yield words[at : each.start]
        yield (f"{mark}{words[each.start : each.end]}{mark}", "" if plain else HIGHLIGHT)
        at = each.end
    yield words[at:]
