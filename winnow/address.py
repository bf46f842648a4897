"""Addresses of the form HOST:PORT. Pure: does not resolve names."""

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Self

DEFAULT_ADDRESS = "127.0.0.1:8080"
"""Address of a front node that clients call by default."""
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\.?")
_NUMBERS = re.compile(r"[0-9.]+")
_MAX_PORT = (1 << 16) - 1
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Loopback address for each wildcard address."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    """A host name or an IP address; IPv6 without brackets."""
    port: int
    """A port number; 0 for any free port."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses HOST:PORT, where IPv6 addresses are in brackets; raises ValueError if invalid."""
        host, colon, port = text.rpartition(":")
        if not colon or (text.startswith("[") and text.endswith("]")):
            raise ValueError(f"{text!r} has no port: {_EXPECTED}")
        if not host:
            raise ValueError(f"{text!r} has no host: {_EXPECTED}")
        if not (port.isascii() and port.isdecimal() and int(port) <= _MAX_PORT):
            raise ValueError(f"port {port!r} is not a number from 0 to {_MAX_PORT}: {_EXPECTED}")
        return cls(_host(host), int(port))

    @property
    def reachable(self) -> Self:
        """The address for a local client of a server that listens on this address."""
        return replace(self, host=_LOOPBACK_OF.get(self.host, self.host))

    @property
    def loopback(self) -> bool:
        """Whether only clients on this machine can reach the address."""
        return self.host in {"localhost", "::1"} or self.host.startswith("127.")

    def at(self, port: int) -> Self:
        """Returns the same host with another port."""
        return replace(self, port=port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


_EXPECTED = (
    "expected HOST:PORT, such as 127.0.0.1:8080, [::1]:8080, or 0.0.0.0:8080 for all networks"
)


def _host(text: str) -> str:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else ""
    try:
        if inner:
            ipaddress.IPv6Address(inner)
        elif _NUMBERS.fullmatch(text):
            ipaddress.IPv4Address(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an IP address: {_EXPECTED}") from error
    if not inner and not _HOST_NAME.fullmatch(text):
        hint = "put an IPv6 address in brackets" if ":" in text else "the name is invalid"
        raise ValueError(f"{text!r} is not a host ({hint}): {_EXPECTED}")
    return inner or text
