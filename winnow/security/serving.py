"""TLS of servers: every connection uses the newest certificates; open connections stay.

Where authorities are named, a client without a certificate of theirs gets no connection (mutual
TLS).
"""

import ssl
from typing import Any

import grpc

from winnow.security.certificates import Certificates


def grpc_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    newest = _Newest(certificates)
    mutual = certificates.files.ca is not None
    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        _configuration(certificates), newest, mutual
    )
    return credentials


class _Newest:
    """Called by gRPC at every handshake, in a thread of gRPC's; must not raise."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates, self._version = certificates, certificates.version

    def __call__(self) -> Any:
        """The certificates if they have changed since the last call, else None."""
        self._certificates.refresh()
        if self._version == self._certificates.version:
            return None
        self._version = self._certificates.version
        return _configuration(self._certificates)


def _configuration(certificates: Certificates) -> Any:
    pem = certificates.pem
    assert pem.cert is not None
    assert pem.key is not None
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.cert)], pem.ca)


def http_context(certificates: Certificates) -> ssl.SSLContext:
    """The context of an HTTP server. It stays the same object while certificates change."""
    context = certificates.pem.context

    def newest(connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        """Asked by OpenSSL at every handshake, whether the client names a server or not."""
        certificates.refresh()
        connection.context = certificates.pem.context

    context.sni_callback = newest
    return context
