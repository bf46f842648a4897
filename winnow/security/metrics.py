"""Metrics of certificates."""

import math
from collections.abc import Callable, Iterable
from functools import partial

from cryptography import x509
from prometheus_client import CollectorRegistry

from winnow.security.certificates import Certificates, Pem
from winnow.telemetry.metrics import MetricFactory

_Choose = Callable[[Iterable[float]], float]


class CertificateMetrics:
    """When the certificates of a process expire."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._expiry = make.gauge(
            "winnow_certificate_expiry_timestamp_seconds",
            "When the certificates in a file expire, by the setting that names the file; of a "
            "certificate and those between it and its authority the first, of authorities the last",
            "file",
        )

    def watch(self, certificates: Certificates, cert: str, ca: str) -> None:
        """Shows the expiry of the files, by the settings that name them.

        Files are read again whenever metrics are fetched: a server reads them at handshakes only.
        """
        if certificates.files.cert is not None:
            self._show(cert, certificates, lambda pem: pem.cert, min)
        if certificates.files.ca is not None:
            self._show(ca, certificates, lambda pem: pem.ca, max)

    def _show(
        self,
        file: str,
        certificates: Certificates,
        content: Callable[[Pem], bytes | None],
        choose: _Choose,
    ) -> None:
        shown = partial(_expiry, certificates, content, choose)
        self._expiry.labels(file).set_function(shown)


def expiries(pem: bytes) -> list[float]:
    """Returns when the certificates of a PEM file expire, in the file's order.

    Returns:
        Seconds since 1970.

    Raises ValueError if the file holds no certificate, or a broken one.

    """
    found = x509.load_pem_x509_certificates(pem)
    return [certificate.not_valid_after_utc.timestamp() for certificate in found]


def _expiry(
    certificates: Certificates, content: Callable[[Pem], bytes | None], choose: _Choose
) -> float:
    """The expiry; NaN for files that cannot be read, since an error would hide all metrics."""
    certificates.refresh()
    try:
        return choose(expiries(content(certificates.pem) or b""))
    except ValueError:
        return math.nan
