"""TLS of servers. New connections use the newest certificates; open connections stay open.

If `ca` is set, only clients with a certificate from that authority can connect (mutual TLS).
"""

import ssl
from typing import Any

import grpc

from winnow.security.certificates import Certificates


def grpc_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """Returns the TLS credentials of a gRPC server."""
    mutual = certificates.files.ca is not None
    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        _configuration(certificates), _CertificateFetcher(certificates), mutual
    )
    return credentials


class _CertificateFetcher:
    """Fetches changed certificates. gRPC calls it at every handshake, in its own thread.

    The call must not raise.
    """

    def __init__(self, certificates: Certificates) -> None:
        self._certificates, self._version = certificates, certificates.version

    def __call__(self) -> Any:
        """Returns the certificates if they changed since the last call, and None otherwise."""
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
    """Returns the SSL context of an HTTP server, which uses the newest certificates."""
    context = certificates.pem.context

    def use_newest(connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        """Sets the newest context of a connection. OpenSSL calls this even without SNI."""
        certificates.refresh()
        connection.context = certificates.pem.context

    context.sni_callback = use_newest
    return context
