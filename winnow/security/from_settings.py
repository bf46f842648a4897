"""Builds the TLS of servers, and the channels to other nodes, from a process's settings."""

from dataclasses import dataclass

from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.metrics import CertificateMetrics
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.settings.securing import PeerSettings, SecuritySettings


@dataclass(frozen=True, slots=True)
class ServerSecurity:
    """The security options of a server; plain text by default."""

    certificates: Certificates | None = None
    reflection: bool = True
    """Whether clients may list the methods with gRPC reflection."""
    peer_calls: int | None = None
    """Maximum number of running calls per caller (`winnow.rpc.per_address`); None for no limit."""


def server_security(
    settings: SecuritySettings, metrics: CertificateMetrics, peer_calls: int | None = None
) -> ServerSecurity:
    """Reads the certificates that the settings name, and returns the security options of a server.

    Raises CertificateError if a file cannot be used.
    """
    certificates = None
    if settings.tls_cert is not None:
        certificates = Certificates(
            TlsFiles(cert=settings.tls_cert, key=settings.tls_key, ca=settings.tls_client_ca)
        )
        metrics.export_expiry(certificates, "tls_cert", "tls_client_ca")
    return ServerSecurity(certificates, settings.reflection, peer_calls)


def peer_channels(settings: PeerSettings, metrics: CertificateMetrics) -> PeerChannels:
    """Reads the certificates that the settings name, and returns the channels to other nodes.

    Raises CertificateError if a file cannot be used.
    """
    if settings.peer_ca is None:
        return PLAIN_TEXT
    files = TlsFiles(cert=settings.peer_cert, key=settings.peer_key, ca=settings.peer_ca)
    certificates = Certificates(files)
    metrics.export_expiry(certificates, "peer_cert", "peer_ca")
    return PeerChannels(certificates, settings.peer_name)
