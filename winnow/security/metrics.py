"""Metrics of the expiry of certificates."""

import math
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import CollectorRegistry

from winnow.security.certificates import Certificates, Pem
from winnow.telemetry.metrics import MetricFactory


class CertificateMetrics:
    """Gauges of the expiry of a process's certificates."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._expiry = make.gauge(
            "winnow_certificate_expiry_timestamp_seconds",
            "Expiry of the certificates in a file, by the setting that names the file: the "
            "earliest expiry of a certificate chain, the latest expiry of authorities",
            "file",
        )

    def export_expiry(self, certificates: Certificates, cert: str, ca: str) -> None:
        """Exports the expiry of the certificate file and of the CA file.

        `cert` and `ca` are the names of the settings that hold the paths of the files.

        Each scrape of the metrics rereads changed files, because servers reread them only at
        handshakes.
        """
        if certificates.files.cert is not None:
            gauge = self._expiry.labels(cert)
            gauge.set_function(partial(_expiry, certificates, lambda pem: pem.cert, min))
        if certificates.files.ca is not None:
            gauge = self._expiry.labels(ca)
            gauge.set_function(partial(_expiry, certificates, lambda pem: pem.ca, max))


def expiries(pem: bytes) -> list[float]:
    """Returns when each certificate of a PEM file expires, in seconds since 1970.

    Raises ValueError if `pem` holds no certificate, or an invalid one.
    """
    from cryptography import x509  # noqa: PLC0415 (only with TLS)

    chain = x509.load_pem_x509_certificates(pem)
    return [certificate.not_valid_after_utc.timestamp() for certificate in chain]


def _expiry(
    certificates: Certificates,
    content: Callable[[Pem], bytes | None],
    choose: Callable[[Iterable[float]], float],
) -> float:
    """Returns the earliest or latest expiry in a file, as `choose` decides.

    Returns NaN for an invalid file, because an error would hide all metrics.
    """
    certificates.refresh()
    try:
        return choose(expiries(content(certificates.pem) or b""))
    except ValueError:
        return math.nan
