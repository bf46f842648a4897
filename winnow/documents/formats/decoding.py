"""Decodes bytes of text: by byte order mark, as UTF-8, as declared, or as detected."""

import codecs
import re

from winnow.documents.failures import ConversionError, FailureReason

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks with their encodings; UTF-32 first, since its mark begins with UTF-16's."""
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""What texts that declare an encoding mostly have: https://encoding.spec.whatwg.org/#names-and-labels"""
_NOT_DECLARED = ("utf", "idna", "punycode", "unicode_escape", "raw_unicode_escape")
_FALLBACK = "cp1252"
_DECLARATION = re.compile(rb"""(?:charset|encoding|coding)\s*[:=]\s*["']?([A-Za-z0-9_.:-]{2,40})""")
"""Declarations of HTML, XML and of editors' modelines."""
_DECLARED_WITHIN = 4096
"""Number of first bytes in which a declaration counts."""
_DETECTED_BY = 200_000
"""Number of bytes by which an encoding is detected."""
_MAX_DAMAGED = 0.001
"""Share of characters up to which bytes that are invalid in UTF-8 become replacement characters."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROLS = 0.02
"""Share of control characters up to which content is text."""


def decode(data: bytes, *, declares: bool = False) -> str:
    """Returns the text; raises ConversionError if the content is not text.

    `declares`: whether the content may declare its encoding, as HTML does.
    """
    text = _decoded(data, declares=declares)
    if len(_CONTROLS.findall(text)) > _MAX_CONTROLS * len(text):
        raise ConversionError(FailureReason.UNKNOWN_FORMAT, "the content is not text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes, *, declares: bool) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    declared = _declared(data) if declares else None
    # the one kind of encoding whose bytes are valid UTF-8, too
    first = declared if declared and declared.startswith("iso2022") else "utf-8"
    try:
        return data.decode(first)
    except UnicodeDecodeError:
        pass
    if declared:
        text = data.decode(declared, errors="replace")
        if _undamaged(text):
            return text
    text = data.decode("utf-8", errors="replace")
    return text if _undamaged(text) else data.decode(_detected(data), errors="replace")


def _undamaged(text: str) -> bool:
    return text.count("\ufffd") <= _MAX_DAMAGED * len(text)


def _declared(data: bytes) -> str | None:
    """Returns Python's name of the declared encoding; None without a known one."""
    match = _DECLARATION.search(data, 0, _DECLARED_WITHIN)
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii")).name
        # codecs such as `hex` decode no text
        b"a".decode(name)
    except (LookupError, UnicodeError):
        return None
    # a declaration that could be read is not UTF-16
    return None if name.startswith(_NOT_DECLARED) else _SUPERSETS.get(name, name)


def _detected(data: bytes) -> str:
    """Returns the most probable encoding."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - of the extra `documents`

    best = from_bytes(data[:_DETECTED_BY]).best()
    name = best.encoding if best else _FALLBACK
    return _SUPERSETS.get(codecs.lookup(name).name, name)
