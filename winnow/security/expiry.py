"""When certificates expire, as the certificates say. Pure.

Python's `ssl` tells it of authorities only, so the few fields before it are skipped here (RFC 5280,
4.1). OpenSSL has taken the certificates before: what it takes is not checked again.
"""

import binascii
import re
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.+?)-----END", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17
_CENTURY = 50
"""Years of two digits below it are of this century."""
_LONG = 0x80
_Part = tuple[int, bytes, bytes]
"""Tag, content, and what comes after it."""


def expiries(pem: bytes) -> list[float]:
    """The ends of all certificates in a file, in its order; seconds since 1970.

    Raises:
        ValueError: one is no certificate.

    """
    return [_end(binascii.a2b_base64(found)) for found in _PEM.findall(pem)]


def _end(der: bytes) -> float:
    _, certificate, _ = _part(der)
    _, fields, _ = _part(certificate)
    tag, _, after = _part(fields)
    if tag == _VERSION:
        _, _, after = _part(after)  # the serial number
    _, _, after = _part(after)  # the algorithm of the signature
    _, _, after = _part(after)  # the issuer
    _, validity, _ = _part(after)
    _, _, end = _part(validity)  # the beginning
    kind, when, _ = _part(end)
    return _time(kind, when.decode("ascii")).timestamp()


def _time(kind: int, text: str) -> datetime:
    if kind == _UTC_TIME:
        text = ("20" if int(text[:2]) < _CENTURY else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _part(der: bytes) -> _Part:
    """The first element of DER."""
    if len(der) < 2:  # noqa: PLR2004 (a tag and a length)
        raise ValueError("a certificate ends too early")
    tag, length, begin = der[0], der[1], 2
    if length & _LONG:
        begin += length & ~_LONG
        length = int.from_bytes(der[2:begin], "big")
    return tag, der[begin : begin + length], der[begin + length :]
