"""Prints results of commands: JSON, tables, and text without control characters."""

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
HIGHLIGHT = "bold reverse"
"""Style of highlighted words in a text."""


def console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """Returns a console that does not highlight numbers and other values by itself."""
    return Console(stderr=stderr, highlight=False, soft_wrap=soft_wrap)


def print_json(value: object, indent: int | None = 2) -> None:
    """Prints a result as JSON, on one line if `indent` is None."""
    typer.echo(json.dumps(to_json(value), indent=indent))


def to_json(value: Any) -> Any:
    """Converts a result to JSON values. Infinite and NaN floats become null."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
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
    """Builds a table. The first column and the columns named in `words` are left-aligned.

    The other columns are right-aligned. `ruled`: whether a line separates the header from the rows.
    """
    built = Table(title=title, title_justify="left", header_style="bold" if ruled else "dim")
    built.box, built.padding, built.pad_edge = (
        box.SIMPLE_HEAD if ruled else None,
        (0, 2, 0, 0),
        False,
    )
    for number, name in enumerate(columns):
        left = not number or name in words
        built.add_column(name, justify="left" if left else "right", no_wrap=not left)
    for row in rows:
        built.add_row(*row)
    return built


def printable(text: str, lines: bool = False) -> str:
    """Replaces every control character by one printable character; `lines` keeps line breaks.

    A terminal would execute escape sequences in a passage. rich would drop carriage returns, and
    the offsets of later characters would be wrong.
    """
    return "".join(_printable_characters(text, lines))


def _printable_characters(text: str, lines: bool) -> Iterator[str]:
    for character in text:
        if unicodedata.category(character) not in {"Cc", "Cs"} or (lines and character == "\n"):
            yield character
        else:
            yield " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"


def replace_unencodable_characters() -> None:
    """Makes stdin and stdout replace characters that their encoding lacks."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
