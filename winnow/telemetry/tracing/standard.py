"""The variables by which OpenTelemetry is configured, as far as they apply here.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/. Secrets come by them, and by no flag.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from winnow.quoting import quoted
from winnow.settings.source import SettingsError

_HEADER = re.compile(r"[0-9a-z_.-]+(?<!-bin)")
_SENDABLE = re.compile(r"[ -~]*")
_EXPORTER, _TRACES = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """The values of the variables."""

    resource: Mapping[str, str]
    """Attributes of the process."""
    headers: tuple[tuple[str, str], ...]
    """Headers for the collector, such as a token."""
    authority: bytes | None
    """Certificates of the collector's authorities; None for those of the machine."""
    certificate: bytes | None
    key: bytes | None
    """The client's key, if the collector asks for a certificate."""


def standard(environment: Mapping[str, str]) -> Standard:
    """Reads the variables, and the files that they name. Raises SettingsError if a file cannot be
    read, or a header cannot be sent; says its name only.
    """
    resource = pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if name := environment.get("OTEL_SERVICE_NAME"):
        resource["service.name"] = name
    return Standard(
        resource=resource,
        headers=_headers(environment),
        authority=_file(environment, "CERTIFICATE"),
        certificate=_file(environment, "CLIENT_CERTIFICATE"),
        key=_file(environment, "CLIENT_KEY"),
    )


def pairs(text: str) -> dict[str, str]:
    """The pairs of `key=value,key=value`, with values as in URLs; other parts are ignored."""
    split = (each.partition("=") for each in text.split(","))
    return {key.strip(): unquote(value.strip()) for key, _, value in split if key.strip() and value}


def _headers(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    headers = pairs(_said(environment, "HEADERS"))
    for key, value in headers.items():
        if not _HEADER.fullmatch(key.lower()) or not _SENDABLE.fullmatch(value):
            raise SettingsError(f"{_EXPORTER}HEADERS: {quoted(key)} cannot be sent as a header")
    return tuple((key.lower(), value) for key, value in headers.items())


def _said(environment: Mapping[str, str], name: str) -> str:
    return environment.get(_TRACES + name) or environment.get(_EXPORTER + name, "")


def _file(environment: Mapping[str, str], name: str) -> bytes | None:
    path = _said(environment, name)
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{_EXPORTER}{name} cannot be read: {error}") from error
