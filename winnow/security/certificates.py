"""The certificates of a process, as its files have them now.

Knows files and whether they belong together; knows neither servers nor channels. Files are replaced
one after the other while a process runs: the old pair stays until the new certificate and key
match.
"""

import ssl
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from winnow.errors import WinnowError
from winnow.files.watched import WatchedFiles

_log = structlog.get_logger("winnow.security")


class CertificateError(WinnowError):
    """A certificate, a key or an authority cannot be used; says which file, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Files in PEM."""

    cert: Path | None = None
    """The certificate, followed by those between it and its authority."""
    key: Path | None = None
    """Its private key, without a passphrase."""
    ca: Path | None = None
    """The authorities that may sign the certificate of the other side."""


@dataclass(frozen=True, slots=True)
class Pem:
    """The content of the files; None for a file that is not named."""

    cert: bytes | None
    key: bytes | None = field(repr=False)
    ca: bytes | None
    context: ssl.SSLContext = field(repr=False, compare=False)
    """A context of the same content, for servers in Python."""


class Certificates:
    """The last usable content of the files. Threads may share it."""

    def __init__(self, files: TlsFiles) -> None:
        """Reads the files. Raises CertificateError if they cannot be used."""
        self.files = files
        paths = (path for path in (files.cert, files.key, files.ca) if path is not None)
        self._watched = WatchedFiles(paths, partial(_read, files), _stay)

    @property
    def pem(self) -> Pem:
        """The content of the files."""
        return self._watched.content

    @property
    def version(self) -> int:
        """Grows whenever `pem` changes."""
        return self._watched.version

    def refresh(self) -> None:
        """Reads the files again if they have changed. Blocks.

        Logs an error if they cannot be used.
        """
        if self._watched.refresh():
            _log.info("certificates read again", **_named(self.files))


def _stay(error: WinnowError) -> None:
    _log.error("certificates could not be read again; the old ones stay in use", error=str(error))


def _read(files: TlsFiles) -> Pem:
    context = _context()
    pem = Pem(_content(files.cert), _content(files.key), _content(files.ca), context)
    if files.cert is not None:
        try:
            context.load_cert_chain(files.cert, files.key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"cannot use certificate {files.cert} with key {files.key}: {_said(error)}; both "
                "must be PEM, belong together, and have no passphrase"
            ) from error
    if pem.ca is not None:
        try:
            # other characters than ASCII can only be between certificates
            context.load_verify_locations(cadata=pem.ca.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"cannot use {files.ca} as authorities: {_said(error)}; expected certificates in "
                "PEM"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return pem


def _content(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # or a client whose authority is no longer trusted could take up an earlier session
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def _no_passphrase() -> str:
    """Gives OpenSSL an empty passphrase: it would wait for one at a terminal."""
    return ""


def _said(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error).lower().replace("_", " ")


def _named(files: TlsFiles) -> dict[str, str]:
    named = {"cert": files.cert, "key": files.key, "ca": files.ca}
    return {name: str(path) for name, path in named.items() if path is not None}
