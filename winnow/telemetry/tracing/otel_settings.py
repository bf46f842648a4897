"""Reads the supported environment variables of OpenTelemetry's exporter.

https://opentelemetry.io/docs/specs/otel/protocol/exporter/ specifies them. Secrets can be set only
by variables, not by flags.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from winnow.quoting import quoted
from winnow.settings.errors import SettingsError

_HEADER = re.compile(r"[0-9a-z_.-]+(?<!-bin)")
_SENDABLE = re.compile(r"[ -~]*")
_PREFIX, _TRACES_PREFIX = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelSettings:
    """The values of OpenTelemetry's environment variables."""

    resource: Mapping[str, str]
    """Attributes that describe the process in traces."""
    headers: tuple[tuple[str, str], ...]
    """Headers for the collector, such as a token."""
    authority: bytes | None
    """PEM certificates of the authorities that sign the collector's; None for gRPC's defaults."""
    certificate: bytes | None
    """The client's certificate, if the collector requires one."""
    key: bytes | None
    """The private key of the client's certificate."""


def read_otel_settings(environment: Mapping[str, str]) -> OtelSettings:
    """Reads the variables, and the files that they name.

    Raises SettingsError if a file cannot be read or a header is invalid. The message never contains
    header values.
    """
    resource = parse_pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if name := environment.get("OTEL_SERVICE_NAME"):
        resource["service.name"] = name
    return OtelSettings(
        resource=resource,
        headers=_headers(environment),
        authority=_read_file(environment, "CERTIFICATE"),
        certificate=_read_file(environment, "CLIENT_CERTIFICATE"),
        key=_read_file(environment, "CLIENT_KEY"),
    )


def parse_pairs(text: str) -> dict[str, str]:
    """Parses `key=value,key=value` with URL-encoded values; other entries are ignored."""
    entries = (entry.partition("=") for entry in text.split(","))
    return {
        key.strip(): unquote(value.strip()) for key, _, value in entries if key.strip() and value
    }


def _headers(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    headers = parse_pairs(_variable(environment, "HEADERS"))
    for key, value in headers.items():
        if not _HEADER.fullmatch(key.lower()) or not _SENDABLE.fullmatch(value):
            raise SettingsError(f"{_PREFIX}HEADERS: {quoted(key)} is not a valid header")
    return tuple((key.lower(), value) for key, value in headers.items())


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(_TRACES_PREFIX + name) or environment.get(_PREFIX + name, "")


def _read_file(environment: Mapping[str, str], name: str) -> bytes | None:
    path = _variable(environment, name)
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{_PREFIX}{name} cannot be read: {error}") from error
