"""The credentials of one client, as their files have them now."""

import time
from functools import partial
from pathlib import Path

import grpc

from winnow.client.credentials import Credentials
from winnow.errors import InvalidRequestError, Violation
from winnow.files.watched import WatchedFiles
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
        """Reads the files. Raises InvalidRequestError if a file cannot be used, or a token would be
        sent in plain text.
        """
        self._credentials = credentials = credentials or Credentials()
        credentials.check(address)
        self._certificates = _certificates(credentials) if credentials.encrypted else None
        self._looked = time.monotonic()
        self._token_file: WatchedFiles[str] | None = None
        if credentials.token_file is not None:
            path = Path(credentials.token_file)
            self._token_file = WatchedFiles([path], partial(_token, path))

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
        token = self._credentials.token
        if self._token_file is not None:
            self._token_file.look()
            token = self._token_file.content
        return ((HEADER, f"Bearer {token}"),) if token else ()


def _certificates(credentials: Credentials) -> Certificates:
    paths = (credentials.cert, credentials.key, credentials.ca)
    try:
        return Certificates(TlsFiles(*(None if each is None else Path(each) for each in paths)))
    except CertificateError as error:
        raise InvalidRequestError(Violation("credentials", str(error))) from error


def _token(path: Path) -> str:
    """The token that stands in a file; raises InvalidRequestError if there is none."""
    try:
        with path.open("rb") as file:
            token = file.read(_LONGEST).decode("ascii").strip()
        if not is_token(token):
            raise ValueError("it holds no token")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds no token"
        raise InvalidRequestError(
            Violation(
                "token_file", f"cannot use {path}: {why}; expected what `winnow keys new` prints"
            )
        ) from None  # the cause would quote what stands in the file
    return token
