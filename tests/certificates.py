"""Creates certificate authorities and certificates in files."""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from winnow.security.certificates import TlsFiles

_DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority with its certificate in a file."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory, self._name = directory, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _signed(
            _named(name), _named(name), self._key, self._key, authority=True
        )
        self.ca = directory / f"{name}.pem"
        self.ca.write_bytes(_pem(self._certificate))

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = ("localhost",),
        days: int = 1,
        ca: Path | None = None,
    ) -> TlsFiles:
        """Issues a certificate for host names or addresses; replaces files of the same name.

        Args:
            name: common name, and name of the files
            hosts: host names or IP addresses
            days: days until the certificate expires; negative for an expired one
            ca: file with the peer's authority; this authority if None

        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(
            _named(name), self._certificate.subject, key, self._key, hosts=hosts, days=days
        )
        files = TlsFiles(
            cert=self._directory / f"{name}.crt",
            key=self._directory / f"{name}.key",
            ca=ca or self.ca,
        )
        assert files.cert is not None
        assert files.key is not None
        files.cert.write_bytes(_pem(certificate))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    authority: bool = False,
    hosts: Sequence[str] = (),
    days: int = 1,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts if not _is_ip(host)]
    names += [x509.IPAddress(ipaddress.ip_address(host)) for host in hosts if _is_ip(host)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * _DAY)
        .not_valid_after(now + days * _DAY)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(by, hashes.SHA256())


def _is_ip(host: str) -> bool:
    return host.replace(".", "").isdecimal()
