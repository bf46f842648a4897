"""Types of settings and options: numbers, addresses to listen on, directories, URLs."""

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
"""The beginning of a URL. A `Path` of a URL has one slash instead of two."""


def _reject_url(value: object) -> object:
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


BundleDirectory = Annotated[Path, BeforeValidator(_reject_url)]
"""The directory of a bundle."""


def parse_bundle_directory(text: str) -> Path:
    """Parses the directory of a bundle, for an option of a command."""
    try:
        return Path(str(_reject_url(text)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _check_address(value: str) -> str:
    Address.parse(value)
    return value


ListenAddress = Annotated[str, AfterValidator(_check_address)]
"""HOST:PORT to listen on; port 0 for any free port."""
OptionalListenAddress = Annotated[
    str, AfterValidator(lambda value: value and _check_address(value))
]
"""HOST:PORT to listen on, or empty."""


def parse_directory_or_url(text: str) -> str:
    """Parses a directory or URL. An empty text is an error: it would mean the working directory."""
    if not text.strip():
        raise typer.BadParameter("expected a directory or a URL, not an empty text")
    return text
