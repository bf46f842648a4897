"""TLS of servers: new connections use the newest certificates, and open ones are kept.

If `ca` is set, only clients with a certificate of that authority can connect (mutual TLS).
"""

import ssl
from typing import Any

import grpc

from winnow.security.certificates import Certificates


def grpc_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """TLS credentials of a gRPC server."""
    mutual = certificates.files.ca is not None
    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        _configuration(certificates), _CertificateFetcher(certificates), mutual
    )
    return credentials


class _CertificateFetcher:
    """Fetches changed certificates. gRPC calls it at every handshake, in its own thread.

    It must not raise.
    """

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
    """The SSL context of an HTTP server. The object stays the same while certificates change."""
    context = certificates.pem.context

    def use_newest(connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        """Sets the newest context. OpenSSL calls it at every handshake, even without SNI."""
        certificates.refresh()
        connection.context = certificates.pem.context

    context.sni_callback = use_newest
    return context
