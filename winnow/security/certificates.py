"""The current certificates of a process, read from its files.

Files may be replaced one by one while the process runs. The old certificate and key stay in use
until the new ones match. Knows neither servers nor channels.
"""

import ssl
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from winnow.errors import WinnowError
from winnow.files.watched import WatchedFiles


class CertificateError(WinnowError):
    """A certificate, key or authority file cannot be used. The message names file and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The PEM files that TLS needs."""

    cert: Path | None = None
    """The certificate of this process, followed by its intermediate certificates."""
    key: Path | None = None
    """The private key of the certificate, without a passphrase."""
    ca: Path | None = None
    """The certificate authorities that may sign the certificate of the other side."""


@dataclass(frozen=True, slots=True)
class Pem:
    """The content of `TlsFiles`. A field is None if the path is None."""

    cert: bytes | None
    key: bytes | None = field(repr=False)
    ca: bytes | None
    context: ssl.SSLContext = field(repr=False, compare=False)
    """An SSL context with this content, for HTTP servers."""


class Certificates:
    """The last valid content of the TLS files. Thread-safe."""

    def __init__(self, files: TlsFiles) -> None:
        """Reads the files. Raises CertificateError if they cannot be used."""
        self.files = files
        paths = (path for path in (files.cert, files.key, files.ca) if path is not None)
        self._watched = WatchedFiles(paths, partial(_read, files), _log_failed_reread)

    @property
    def pem(self) -> Pem:
        """The content of the files."""
        return self._watched.content

    @property
    def version(self) -> int:
        """Number of changes of `pem`."""
        return self._watched.version

    def refresh(self) -> None:
        """Rereads the files if they have changed. Blocks.

        Logs an error if the new files cannot be used.
        """
        if self._watched.refresh():
            _log().info("certificates read again", **_paths(self.files))


def _log() -> Any:
    import structlog  # noqa: PLC0415 (clients without TLS import this module)

    return structlog.get_logger("winnow.security")


def _log_failed_reread(error: WinnowError) -> None:
    _log().error("certificates could not be read again; the old ones stay in use", error=str(error))


def _read(files: TlsFiles) -> Pem:
    context = _context()
    pem = Pem(_read_file(files.cert), _read_file(files.key), _read_file(files.ca), context)
    if files.cert is not None:
        try:
            context.load_cert_chain(files.cert, files.key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"cannot use certificate {files.cert} with key {files.key}: {_reason(error)}; both "
                "must be PEM, belong together, and have no passphrase"
            ) from error
    if pem.ca is not None:
        try:
            # non-ASCII characters can only be in comments between certificates
            context.load_verify_locations(cadata=pem.ca.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"cannot use {files.ca} as certificate authorities: {_reason(error)}; expected PEM "
                "certificates"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return pem


def _read_file(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # with session tickets, a client could return after its authority lost trust
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def _no_passphrase() -> str:
    """Returns an empty passphrase, because OpenSSL would prompt for one at a terminal."""
    return ""


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).lower().replace("_", " ")


def _paths(files: TlsFiles) -> dict[str, str]:
    paths = {"cert": files.cert, "key": files.key, "ca": files.ca}
    return {name: str(path) for name, path in paths.items() if path is not None}
