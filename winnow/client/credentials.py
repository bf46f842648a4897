"""Credentials of a client: its certificate and API key, and the authorities that it trusts."""

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc

from winnow.address import Address
from winnow.errors import InvalidRequestError, invalid_field
from winnow.files.watched import WatchedFiles
from winnow.keys.token import HEADER, is_token
from winnow.security.certificates import CertificateError, Certificates, TlsFiles
from winnow.security.peers import channel_credentials

_TARGET_PREFIXES = ("dns:///", "ipv4:", "ipv6:")
_CHECK_INTERVAL = 1.0
"""Seconds between two checks of the certificate files."""
_MAX_TOKEN_BYTES = 4_096
_NO_TOKEN = "the file holds no token"  # noqa: S105 (no password)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials for front nodes that require TLS, API keys, or both.

    A changed file is read again: a certificate for the next connection, an API key for the next
    call.
    """

    ca: str | Path | None = None
    """PEM file of the authorities that may sign the front node's certificate."""
    cert: str | Path | None = None
    """PEM file of the client's certificate, if front nodes require one."""
    key: str | Path | None = None
    """PEM file of the private key that belongs to `cert`, without a passphrase."""
    tls: bool = False
    """Whether to use TLS. Without `ca`, gRPC's built-in authorities are trusted."""
    server_name: str = ""
    """Name that the front node's certificate must have; empty for the host of the address."""
    token_file: str | Path | None = None
    """File with the API key's token, as `winnow keys new` prints it."""
    token: str = field(default="", repr=False)
    """The API key's token, instead of `token_file`."""

    def __post_init__(self) -> None:
        """Raises InvalidRequestError if the fields contradict each other."""
        if (self.cert is None) != (self.key is None):
            raise _invalid("cert", "give a certificate and its key, or neither")
        if self.token and self.token_file is not None:
            raise _invalid("token", "give `token` or `token_file`, not both")
        if self.token and not is_token(self.token):
            raise _invalid("token", "contains characters that no token has")
        if (self.cert is not None or self.server_name) and not self.encrypted:
            raise _invalid(
                "ca", "a client certificate or a server name needs TLS: give `ca`, or set `tls`"
            )

    @property
    def encrypted(self) -> bool:
        """Whether connections are made over TLS."""
        return self.tls or self.ca is not None

    @property
    def has_token(self) -> bool:
        """Whether calls carry a token."""
        return bool(self.token) or self.token_file is not None

    def check_address(self, address: str) -> None:
        """Raises InvalidRequestError if a token would travel to another machine in plain text."""
        if self.has_token and not self.encrypted and not _is_local(address):
            raise _invalid(
                "token", f"would be sent to {address} in plain text: give `ca`, or set `tls`"
            )


class LiveCredentials:
    """Credentials whose files are read again when they change. Threads may share an instance."""

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        """Reads the files.

        Raises InvalidRequestError if a file cannot be used, or a token would be sent in plain text.
        """
        self._credentials = credentials = credentials or Credentials()
        credentials.check_address(address)
        self._certificates = _certificates(credentials) if credentials.encrypted else None
        self._checked = time.monotonic()
        self._token_file: WatchedFiles[str] | None = None
        if credentials.token_file is not None:
            path = Path(credentials.token_file)
            self._token_file = WatchedFiles([path], partial(_read_token, path))

    @property
    def version(self) -> int:
        """A number that grows when the certificates change. Reading it checks the files.

        The files are checked at most once a second.
        """
        if self._certificates is None:
            return 0
        if time.monotonic() - self._checked >= _CHECK_INTERVAL:
            self._checked = time.monotonic()
            self._certificates.refresh()
        return self._certificates.version

    def channel_credentials(self) -> grpc.ChannelCredentials | None:
        """TLS credentials for a new channel; None for plain text."""
        return channel_credentials(self._certificates) if self._certificates else None

    @property
    def options(self) -> list[tuple[str, int | str]]:
        """Options of gRPC for a new channel: the server name to expect, if it is set."""
        name = self._credentials.server_name
        return [("grpc.ssl_target_name_override", name)] if name else []

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of a call: the token. If the token file is damaged, the last token is used."""
        token = self._credentials.token
        if self._token_file is not None:
            self._token_file.refresh()
            token = self._token_file.content
        return ((HEADER, f"Bearer {token}"),) if token else ()


def _is_local(address: str) -> bool:
    """Whether an address is on this machine: loopback, or a Unix socket."""
    if address.startswith("unix:"):
        return True
    for prefix in _TARGET_PREFIXES:
        address = address.removeprefix(prefix)
    try:
        return all(Address.parse(each).loopback for each in address.split(","))
    except ValueError:  # a gRPC target of another form
        return False


def _invalid(name: str, problem: str) -> InvalidRequestError:
    return invalid_field(name, problem)


def _certificates(credentials: Credentials) -> Certificates:
    cert, key, ca = (
        None if path is None else Path(path)
        for path in (credentials.cert, credentials.key, credentials.ca)
    )
    try:
        return Certificates(TlsFiles(cert=cert, key=key, ca=ca))
    except CertificateError as error:
        raise _invalid("credentials", str(error)) from error


def _read_token(path: Path) -> str:
    """Reads the token in a file. Raises InvalidRequestError if it holds none."""
    try:
        with path.open("rb") as file:
            token = file.read(_MAX_TOKEN_BYTES).decode("ascii").strip()
        if not is_token(token):
            raise ValueError(_NO_TOKEN)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else _NO_TOKEN
        raise _invalid(
            "token_file", f"cannot use {path}: {reason}; expected what `winnow keys new` prints"
        ) from None  # the cause would quote the content of the file
    return token
