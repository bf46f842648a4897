"""How commands print results: JSON, tables, and text that a terminal must not obey."""

import io
import json
import math
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MARK = "bold reverse"
"""Style of the words that are pointed out in a text."""


def console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that styles only what is styled on purpose."""
    return Console(stderr=stderr, highlight=False, soft_wrap=soft_wrap)


def print_json(value: object, indent: int | None = 2) -> None:
    """Prints a result as JSON; on one line if `indent` is None."""
    typer.echo(json.dumps(as_plain(value), indent=indent))


def as_plain(value: Any) -> Any:
    """A result as JSON has it: objects by their fields, figures that are not finite as null."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[RenderableType]] = (),
    *,
    words: Collection[str] = (),
    title: str | None = None,
    ruled: bool = True,
) -> Table:
    """A table. The first column and those named in `words` are aligned left, figures right.

    `ruled`: whether a line separates the names of the columns from the rows.
    """
    made = Table(title=title, title_justify="left", header_style="bold" if ruled else "dim")
    made.box, made.padding, made.pad_edge = box.SIMPLE_HEAD if ruled else None, (0, 2, 0, 0), False
    for place, name in enumerate(columns):
        left = not place or name in words
        made.add_column(name, justify="left" if left else "right", no_wrap=not left)
    for row in rows:
        made.add_row(*row)
    return made


def harmless(text: str, lines: bool = False) -> str:
    """The text with one printable character for every control character.

    A passage may hold escape sequences, which a terminal would obey, and returns, which rich drops:
    then offsets behind them would point elsewhere. `lines` keeps line breaks.
    """
    return "".join(_harmless(text, lines))


def _harmless(text: str, lines: bool) -> Iterator[str]:
    for character in text:
        if unicodedata.category(character) not in {"Cc", "Cs"} or (lines and character == "\n"):
            yield character
        else:
            yield " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"


def replace_foreign_characters() -> None:
    """Lets stdin and stdout replace characters that the terminal's encoding lacks."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
