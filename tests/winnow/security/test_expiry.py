"""When certificates expire: read from the files, and shown in the metrics."""

import datetime
import math
import time
from pathlib import Path

import pytest
from certificates import Authority
from cryptography import x509
from prometheus_client import CollectorRegistry

from winnow.security.certificates import Certificates, TlsFiles
from winnow.security.metrics import CertificateMetrics, expiries

DAY = 86_400.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def end_of(path: Path | None) -> float:
    """As another reader of certificates has it."""
    assert path is not None
    end: datetime.datetime = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    return end.timestamp()


@pytest.mark.parametrize("days", [-1, 1, 90, 40 * 365, 400 * 365])
def test_the_end_of_a_certificate_is_found(authority: Authority, days: int) -> None:
    """From 2050 on it is written in another way."""
    cert = authority.issue("node", days=days).cert
    assert cert is not None
    assert expiries(cert.read_bytes()) == [end_of(cert)]


def test_every_certificate_of_a_file_is_read_despite_text_in_between(
    authority: Authority,
) -> None:
    one, two = authority.issue("one", days=3).cert, authority.issue("two", days=2).cert
    assert one is not None
    assert two is not None
    both = b"subject=CN = one\n" + one.read_bytes() + b"\r\n# two\n" + two.read_bytes()
    assert expiries(both) == [end_of(one), end_of(two)]


@pytest.mark.parametrize("content", [b"", b"AAAA", b"MA==", b"MIIB", b"!"])
def test_a_file_without_a_certificate_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"(?i)pem|certificate|asn.?1|parse"):
        expiries(b"-----BEGIN CERTIFICATE-----" + content + b"-----END CERTIFICATE-----")


class Watched:
    """Certificates, and what is shown of them."""

    def __init__(self, files: TlsFiles) -> None:
        self.registry = CollectorRegistry()
        metrics = CertificateMetrics(self.registry)
        metrics.export_expiry(Certificates(files), "tls_cert", "tls_client_ca")

    def shown(self, file: str = "tls_cert") -> float | None:
        name = "winnow_certificate_expiry_timestamp_seconds"
        return self.registry.get_sample_value(name, {"file": file})


def test_a_new_certificate_is_shown_although_nobody_connects(authority: Authority) -> None:
    files = authority.issue("node", days=1)
    watched = Watched(files)
    assert watched.shown() == end_of(files.cert)
    assert watched.shown("tls_client_ca") == end_of(files.ca)
    authority.issue("node", days=30)
    assert watched.shown() == end_of(files.cert) == pytest.approx(time.time() + 30 * DAY, abs=60)


def test_of_a_chain_the_first_that_expires_counts_and_of_authorities_the_last(
    authority: Authority, tmp_path: Path
) -> None:
    """An old authority stays in the file until nobody has a certificate of it."""
    files = authority.issue("node", days=30)
    assert files.cert is not None
    early, late = authority.issue("early", days=2).cert, authority.issue("late", days=90).cert
    assert early is not None
    assert late is not None
    files.cert.write_bytes(files.cert.read_bytes() + early.read_bytes())
    several = tmp_path / "several.pem"
    several.write_bytes(authority.ca.read_bytes() + late.read_bytes())
    watched = Watched(TlsFiles(cert=files.cert, key=files.key, ca=several))
    assert watched.shown() == end_of(early)
    assert watched.shown("tls_client_ca") == end_of(late)


def test_files_that_were_not_named_are_not_shown(authority: Authority) -> None:
    watched = Watched(TlsFiles(ca=authority.ca))
    assert watched.shown() is None
    assert watched.shown("tls_client_ca") is not None


def test_an_unreadable_file_hides_no_other_metric(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_pem: bytes) -> list[float]:
        raise ValueError("no certificate")

    monkeypatch.setattr("winnow.security.metrics.expiries", fails)
    shown = Watched(authority.issue("node")).shown()
    assert shown is not None
    assert math.isnan(shown)
