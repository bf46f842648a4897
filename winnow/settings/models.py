"""Bundles as settings and options name them."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BeforeValidator

from winnow.packaged import bundle_place

BUNDLE_HELP = "Directory of the models, or the name of a bundle that Winnow brings: default, fast."
_URL = re.compile(r"[\w+.-]+:/")
"""A flag was read as a path already, which has one slash where a URL has two."""


def _place(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    if _URL.match(str(value)):
        raise ValueError(
            "expected a directory, not a URL: copy the bundle to one first, with "
            "`winnow bundle pull URL DIRECTORY`"
        )
    if not str(value).strip():
        raise ValueError("expected a directory or a name, not an empty text")
    return bundle_place(str(value))


BundlePlace = Annotated[Path, BeforeValidator(_place)]
"""The directory of a bundle; settings may give the name of one that comes with the code."""


def bundle_named(text: str) -> Path:
    """The same for an option of a command."""
    try:
        return Path(str(_place(text)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
