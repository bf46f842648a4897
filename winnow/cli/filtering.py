"""The option `--where` of every command that asks."""

from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Option(
        metavar="FILTER",
        help="Let only passages answer whose metadata is so, such as 'year >= 2010 and lang = "
        '"en"\'. There are = != < <= > >=, in (..), exists, and, or, not, parentheses. Strings and '
        "dates stand in quotes.",
        show_default="all passages",
    ),
]
