"""How a client proves who it is, and whom it believes."""

from dataclasses import dataclass, field
from pathlib import Path

from winnow.address import Address
from winnow.errors import InvalidRequestError, Violation
from winnow.keys.token import is_token

_SEVERAL = ("dns:///", "ipv4:", "ipv6:")


@dataclass(frozen=True, slots=True)
class Credentials:
    """For a front node that serves over TLS, asks for keys, or both.

    Files are read again when they change: certificates for new connections, tokens for new calls.
    """

    ca: str | Path | None = None
    """File of the authorities that the front node's certificate may be from, in PEM."""
    cert: str | Path | None = None
    """File of the client's own certificate, where front nodes ask for one, in PEM."""
    key: str | Path | None = None
    """File of its private key, in PEM, without a passphrase."""
    tls: bool = False
    """Use TLS also without `ca`: with the authorities that come with gRPC."""
    server_name: str = ""
    """Name that the front node's certificate must have; empty for the host of the address."""
    token_file: str | Path | None = None
    """File with the token of a key, as `winnow keys new` prints it."""
    token: str = field(default="", repr=False)
    """The token itself."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError if it makes no sense."""
        if (self.cert is None) != (self.key is None):
            raise _wrong("cert", "give a certificate and its key, or none of them")
        if self.token and self.token_file is not None:
            raise _wrong("token", "give a token or a file with one, not both")
        if self.token and not is_token(self.token):
            raise _wrong("token", "has characters that no token has")
        if (self.cert is not None or self.server_name) and not self.encrypted:
            raise _wrong("ca", "certificates and names need TLS: give `ca`, or set `tls`")

    @property
    def encrypted(self) -> bool:
        """Whether connections are made over TLS."""
        return self.tls or self.ca is not None

    @property
    def has_token(self) -> bool:
        """Whether calls carry a token."""
        return bool(self.token) or self.token_file is not None

    def check(self, address: str) -> None:
        """Raises InvalidRequestError if a token would travel to another machine in plain text."""
        if self.has_token and not self.encrypted and not _stays_here(address):
            raise _wrong(
                "token", f"would be sent to {address} in plain text: give `ca`, or set `tls`"
            )


def _stays_here(address: str) -> bool:
    """Whether what is sent to an address stays on this machine."""
    if address.startswith("unix:"):
        return True
    for prefix in _SEVERAL:
        address = address.removeprefix(prefix)
    try:
        return all(Address.parse(each).loopback for each in address.split(","))
    except ValueError:  # a form of gRPC's that says more than HOST:PORT
        return False


def _wrong(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(name, what))
