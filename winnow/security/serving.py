"""TLS of servers: every connection is made with the newest certificates. Others go on as they are.

With authorities named, a client without a certificate of theirs gets no connection (mutual TLS).
"""

import ssl
from typing import Any

import grpc
import structlog

from winnow.security.certificates import Certificates

_log = structlog.get_logger("winnow.security")


def grpc_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """What a gRPC server listens with."""
    newest = _Newest(certificates)
    mutual = certificates.files.ca is not None
    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        _configuration(certificates), newest, mutual
    )
    return credentials


class _Newest:
    """Asked by gRPC at every handshake, in a thread of its own; must not raise."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates, self._edition = certificates, certificates.edition

    def __call__(self) -> Any:
        """The certificates if they have changed since it was last asked, else None."""
        self._certificates.look()
        if self._edition == self._certificates.edition:
            return None
        self._edition = self._certificates.edition
        return _configuration(self._certificates)


def _configuration(certificates: Certificates) -> Any:
    pem = certificates.pem
    assert pem.cert is not None
    assert pem.key is not None
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.cert)], pem.ca)


def http_context(certificates: Certificates) -> ssl.SSLContext:
    """What an HTTP server listens with. It stays the same object while certificates change."""
    context = _made(certificates)
    context.sni_callback = _NewestContext(certificates, context)
    return context


class _NewestContext:
    """Asked by OpenSSL at every handshake, whether the client names a server or not."""

    def __init__(self, certificates: Certificates, context: ssl.SSLContext) -> None:
        self._certificates, self._context = certificates, context
        self._edition = certificates.edition

    def __call__(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        self._certificates.look()
        if self._edition != self._certificates.edition:
            try:
                self._context = _made(self._certificates)
                self._edition = self._certificates.edition
            except (OSError, ValueError) as error:  # replaced meanwhile: the next one tries again
                _log.warning("certificates of HTTP stay as they were", error=str(error))
        connection.context = self._context


def _made(certificates: Certificates) -> ssl.SSLContext:
    files = certificates.files
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # or a client whose authority is no longer trusted could take up an earlier session
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    assert files.cert is not None
    context.load_cert_chain(files.cert, files.key)
    if certificates.pem.ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=certificates.pem.ca.decode("ascii"))
    return context
