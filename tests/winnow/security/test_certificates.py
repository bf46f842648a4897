"""Certificates as their files have them: read again when they change, and never half replaced."""

import shutil
from pathlib import Path

import pytest
from certificates import Authority
from structlog.testing import capture_logs
from unreadable import without_descriptors

from winnow.security.certificates import CertificateError, Certificates, TlsFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_unchanged_files_are_not_read_again(authority: Authority) -> None:
    certificates = Certificates(authority.issue("node"))
    certificates.refresh()
    assert certificates.version == 0


def test_a_new_pair_is_taken(authority: Authority) -> None:
    certificates = Certificates(authority.issue("node"))
    before = certificates.pem
    authority.issue("node")
    certificates.refresh()
    assert certificates.version == 1
    assert certificates.pem.cert != before.cert
    assert certificates.pem.key != before.key


def test_a_certificate_whose_key_is_still_the_old_one_is_not_taken(
    authority: Authority, tmp_path: Path
) -> None:
    """Files are replaced one after the other."""
    files = authority.issue("node")
    assert files.cert is not None
    assert files.key is not None
    certificates = Certificates(files)
    before = certificates.pem
    other = authority.issue("other")
    assert other.cert is not None
    assert other.key is not None
    with capture_logs() as logged:
        shutil.copy(other.cert, files.cert)
        certificates.refresh()
        certificates.refresh()
    assert certificates.pem == before
    assert [line["log_level"] for line in logged] == ["error"], "once, and not at each look"
    shutil.copy(other.key, files.key)
    certificates.refresh()
    assert certificates.pem.cert == other.cert.read_bytes()


def test_a_new_pair_is_taken_after_a_read_that_failed(authority: Authority) -> None:
    certificates = Certificates(authority.issue("node"))
    newer = authority.issue("node")
    assert newer.cert is not None
    with without_descriptors():
        certificates.refresh()
    assert certificates.version == 0
    certificates.refresh()
    assert certificates.pem.cert == newer.cert.read_bytes()


def test_missing_files_change_nothing(authority: Authority) -> None:
    files = authority.issue("node")
    assert files.ca is not None
    certificates = Certificates(files)
    before = certificates.pem
    files.ca.unlink()
    certificates.refresh()
    assert certificates.pem == before


@pytest.mark.parametrize("broken", ["cert", "key", "ca"])
@pytest.mark.parametrize("content", [None, b"", b"no PEM", "é".encode(), b"\0"])
def test_a_file_that_cannot_be_used_is_named(
    authority: Authority, broken: str, content: bytes | None
) -> None:
    files = authority.issue("node")
    path: Path = getattr(files, broken)
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(CertificateError, match=str(path)):
        Certificates(files)


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(
    authority: Authority, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    files = authority.issue("node")
    assert files.key is not None
    key = ec.generate_private_key(ec.SECP256R1())
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(CertificateError, match="no passphrase"):
        Certificates(files)


def test_a_private_key_is_never_shown(authority: Authority) -> None:
    pem = Certificates(authority.issue("node")).pem
    assert "PRIVATE KEY" not in repr(pem)


def test_authorities_may_be_described_in_any_language(authority: Authority) -> None:
    """As bundles of authorities are, between the certificates."""
    said = "# Főtanúsítvány\n".encode()
    authority.ca.write_bytes(said + authority.ca.read_bytes() + b"\xff\n")
    Certificates(authority.issue("node"))


def test_authorities_alone_are_enough_to_call_others(authority: Authority) -> None:
    pem = Certificates(TlsFiles(ca=authority.ca)).pem
    assert pem.cert is None
    assert pem.ca == authority.ca.read_bytes()
