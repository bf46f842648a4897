"""The credentials of one client, as their files have them now."""

import time
from pathlib import Path

import grpc

from winnow.client.credentials import Credentials
from winnow.errors import InvalidRequestError, Violation
from winnow.files.stamp import Stamp, stamp
from winnow.keys.token import HEADER, is_token
from winnow.security.certificates import CertificateError, Certificates, TlsFiles
from winnow.security.peers import channel_credentials

_EVERY = 1.0
"""Seconds between two looks at certificates."""
_LONGEST = 4_096
"""Bytes of a file with a token."""
Option = tuple[str, int | str]


class Access:
    """What a channel is made with, and what calls carry. Threads may share it."""

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        """Reads the files.

        Raises:
            InvalidRequestError: a file cannot be used, or a token would be sent in plain text.

        """
        self._credentials = credentials = credentials or Credentials()
        credentials.check(address)
        self._certificates = _certificates(credentials) if credentials.encrypted else None
        self._looked = time.monotonic()
        self._token, self._seen = credentials.token, self._stamp()
        if credentials.token_file is not None:
            self._token = _token(Path(credentials.token_file), "")

    @property
    def edition(self) -> int:
        """Another number when channels are to be made anew. Looks at files, once a second."""
        if self._certificates is None:
            return 0
        if time.monotonic() - self._looked >= _EVERY:
            self._looked = time.monotonic()
            self._certificates.look()
        return self._certificates.edition

    @property
    def credentials(self) -> grpc.ChannelCredentials | None:
        """What a channel is made with now; None for plain text."""
        return channel_credentials(self._certificates) if self._certificates else None

    @property
    def options(self) -> list[Option]:
        """Options of a channel."""
        name = self._credentials.server_name
        return [("grpc.ssl_target_name_override", name)] if name else []

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What calls carry; a file that is gone or damaged leaves the token as it was read."""
        path = self._credentials.token_file
        if path is not None and (now := self._stamp()) != self._seen:
            self._token, self._seen = _token(Path(path), self._token), now
        return ((HEADER, f"Bearer {self._token}"),) if self._token else ()

    def _stamp(self) -> Stamp | None:
        """Of the file of the token, if there is one."""
        path = self._credentials.token_file
        return None if path is None else stamp(Path(path))


def _certificates(credentials: Credentials) -> Certificates:
    paths = (credentials.cert, credentials.key, credentials.ca)
    try:
        return Certificates(TlsFiles(*(None if each is None else Path(each) for each in paths)))
    except CertificateError as error:
        raise InvalidRequestError(Violation("credentials", str(error))) from error


def _token(path: Path, before: str) -> str:
    """The token that stands in a file; the one before if there is none, but for the first time."""
    try:
        with path.open("rb") as file:
            token = file.read(_LONGEST).decode("ascii").strip()
        if not is_token(token):
            raise ValueError("it holds no token")
    except (OSError, ValueError) as error:
        if before:
            return before
        why = error.strerror if isinstance(error, OSError) else "it holds no token"
        raise InvalidRequestError(
            Violation(
                "token_file", f"cannot use {path}: {why}; expected what `winnow keys new` prints"
            )
        ) from None  # the cause would quote what stands in the file
    return token
