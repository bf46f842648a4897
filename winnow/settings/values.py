"""Types of settings and options: addresses to listen on, bundles, places of published files."""

import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import AfterValidator, BeforeValidator, Field

from winnow.address import Address

Count = Annotated[int, Field(ge=1)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

BUNDLE_HELP = "Directory of the models."
_URL = re.compile(r"[\w+.-]+:/")
"""A URL; as a path, which a flag may already be, it has one slash instead of two."""


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
    """The directory of a bundle, as an option of a command."""
    try:
        return Path(str(_local(text)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _checked(value: str) -> str:
    Address.parse(value)
    return value


ListenAddress = Annotated[str, AfterValidator(_checked)]
"""HOST:PORT; port 0 for any free one."""
OptionalListenAddress = Annotated[str, AfterValidator(lambda value: value and _checked(value))]
"""The same, or empty for nothing."""


def place_url(text: str) -> str:
    """A directory or URL. An empty text, which would mean the working directory, is an error."""
    if not text.strip():
        raise typer.BadParameter("expected a directory or a URL, not an empty text")
    return text
