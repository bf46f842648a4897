"""Bundles as settings and options name them."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BeforeValidator

BUNDLE_HELP = "Directory of the models."
_URL = re.compile(r"[\w+.-]+:/")
"""A flag was read as a path already, which has one slash where a URL has two."""


def _local(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    if _URL.match(str(value)):
        raise ValueError(
            "expected a directory, not a URL: copy the bundle to one first, with "
            "`winnow bundle pull URL DIRECTORY`"
        )
    if not str(value).strip():
        raise ValueError("expected a directory, not an empty text")
    return value


BundlePlace = Annotated[Path, BeforeValidator(_local)]
"""The directory of a bundle."""


def bundle_place(text: str) -> Path:
    """The same for an option of a command."""
    try:
        return Path(str(_local(text)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
