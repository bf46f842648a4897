"""Types of settings and options: numbers, addresses to listen on, directories, URLs."""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

import typer
from pydantic import AfterValidator, BeforeValidator, Field

from winnow.address import Address

Count = Annotated[int, Field(ge=1)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Seconds = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

BUNDLE_HELP = "Directory of the bundle, which has the models."
_URL = re.compile(r"[\w+.-]+:/")
"""The beginning of a URL. One slash is enough: a `Path` made of a URL has lost the second."""


def _reject_url(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    if _URL.match(str(value)):
        raise ValueError(
            "expected a directory, not a URL: copy the bundle to a directory first, with "
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


def _check_collector(value: str) -> str:
    if not value:
        return value
    parts = urlsplit(value)
    if "@" in parts.netloc:
        raise ValueError(
            "a collector's URL must not contain secrets: set OTEL_EXPORTER_OTLP_HEADERS"
        )
    has_address = parts.scheme in ("http", "https") and parts.hostname and _has_port(parts)
    if not has_address or parts.path.strip("/") or parts.query:
        raise ValueError(
            f"{value!r} is not the URL of an OTLP collector: expected http://HOST:PORT for gRPC, "
            "usually with port 4317"
        )
    return value


def _has_port(parts: SplitResult) -> bool:
    try:
        return bool(parts.port)
    except ValueError:
        return False


CollectorUrl = Annotated[str, AfterValidator(_check_collector)]
"""URL of a collector of traces, or empty."""


def parse_directory_or_url(text: str) -> str:
    """Parses a directory or URL. An empty text is an error: it would mean the working directory."""
    if not text.strip():
        raise typer.BadParameter("expected a directory or a URL, not an empty text")
    return text
