"""How the servers of a process are protected, and how it calls others, by its settings."""

from dataclasses import dataclass

from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.metrics import CertificateMetrics
from winnow.security.peers import PLAIN, Peers
from winnow.settings.securing import PeerSettings, SecuritySettings


@dataclass(frozen=True, slots=True)
class Secured:
    """How a server is protected; plain text by default."""

    certificates: Certificates | None = None
    reflection: bool = True
    peer_calls: int | None = None
    """Most calls in hand of one caller (`winnow.rpc.per_address`); None for no limit."""


def secured(
    settings: SecuritySettings, metrics: CertificateMetrics, peer_calls: int | None = None
) -> Secured:
    """The protection by the settings. Reads files.

    Raises CertificateError if one cannot be used.
    """
    certificates = None
    if settings.tls_cert is not None:
        certificates = Certificates(
            TlsFiles(cert=settings.tls_cert, key=settings.tls_key, ca=settings.tls_client_ca)
        )
        metrics.watch(certificates, "tls_cert", "tls_client_ca")
    return Secured(certificates, settings.reflection, peer_calls)


def peers(settings: PeerSettings, metrics: CertificateMetrics) -> Peers:
    """The channels to other nodes. Reads files; raises as `secured` does."""
    if settings.peer_ca is None:
        return PLAIN
    files = TlsFiles(cert=settings.peer_cert, key=settings.peer_key, ca=settings.peer_ca)
    certificates = Certificates(files)
    metrics.watch(certificates, "peer_cert", "peer_ca")
    return Peers(certificates, settings.peer_name)
