"""Places in the logs of shards as an option has them."""

import re

import typer

from winnow.client import Position

_PLACE = re.compile(r"(\d{1,9}):(\d{1,18})")


def positions(option: str) -> list[Position]:
    """The positions that `option` separates by commas, each as SHARD:SEQUENCE.

    Raises:
        typer.BadParameter: one is none.

    """
    return [_position(each.strip()) for each in option.split(",") if each.strip()]


def _position(text: str) -> Position:
    place = _PLACE.fullmatch(text)
    if place is None:
        raise typer.BadParameter(
            f"{text!r} is not SHARD:SEQUENCE, such as 0:17", param_hint="--after"
        )
    return Position(int(place[1]), int(place[2]))
