"""Tests of the decoding of text."""

import codecs

import pytest

from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats.decoding import decode

GERMAN = "Über die Größe der Äcker: für Müller heißt „schön“ nicht groß. " * 8
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 8
JAPANESE = "日本語の文章を正しく読めることを確認するための例文です。" * 8


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-8"),
        (GERMAN, "utf-16"),
        (GERMAN, "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc-jp"),
    ],
)
def test_text_is_read_in_any_usual_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_byte_order_mark_is_no_text() -> None:
    assert decode(codecs.BOM_UTF8 + b"a\r\nb") == "a\nb"


def test_a_declaration_counts_unless_the_bytes_are_utf_8() -> None:
    declared = '<meta charset="iso-8859-2">'
    assert decode((declared + "Łódź").encode("iso-8859-2"), declares=True).endswith("Łódź")
    assert decode((declared + "Łódź").encode(), declares=True).endswith("Łódź")


@pytest.mark.parametrize("name", [b"hex", b"no-such", b"utf-16", b"idna"])
def test_a_useless_declaration_is_ignored(name: bytes) -> None:
    assert "groß" in decode(
        b"<meta charset=" + name + b">" + GERMAN.encode("cp1252"), declares=True
    )


def test_a_few_damaged_bytes_do_not_change_the_encoding() -> None:
    assert decode(RUSSIAN.encode() * 9 + b"\xff") == RUSSIAN * 9 + "\ufffd"


def test_binary_content_is_refused() -> None:
    with pytest.raises(ConversionError) as caught:
        decode(bytes(range(256)) * 10)
    assert caught.value.reason is FailureReason.UNKNOWN_FORMAT
