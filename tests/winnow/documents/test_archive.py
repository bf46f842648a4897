"""Tests of the limits of zip archives."""

import io
import zipfile

import pytest
from document_files import zipped

from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats import archive as module
from winnow.documents.formats.archive import DocumentArchive


def failure(archive: DocumentArchive, name: str = "a.xml") -> tuple[FailureReason, str]:
    with pytest.raises(ConversionError) as caught:
        archive.xml(name)
    return caught.value.reason, caught.value.detail


def test_members_that_unpack_to_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_MEMBER_BYTES", 1_000)
    bomb = DocumentArchive(zipped({"a.xml": b" " * 1_000_000}))
    assert failure(bomb) == (
        FailureReason.TOO_LARGE,
        "the member 'a.xml' has more than 1,000 bytes",
    )


def test_all_members_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 1_000)
    archive = DocumentArchive(zipped({"a.xml": b"<a/>" + b" " * 700}))
    archive.xml("a.xml")
    assert failure(archive)[0] is FailureReason.TOO_LARGE


def test_a_declared_size_that_is_wrong_does_not_help() -> None:
    data = zipped({"a.xml": b"<a/>" + b" " * 100_000})
    declared = (100_004).to_bytes(4, "little")
    lying = data.replace(declared, (10).to_bytes(4, "little"))
    assert lying != data
    assert failure(DocumentArchive(lying))[0] is FailureReason.DAMAGED


def test_entities_are_refused() -> None:
    laughs = '<!DOCTYPE a [<!ENTITY l "ha"><!ENTITY m "&l;&l;&l;">]><a>&m;</a>'
    for content in (laughs.encode(), laughs.encode("utf-16")):
        archive = DocumentArchive(zipped({"a.xml": content}))
        assert failure(archive) == (FailureReason.DAMAGED, "the member 'a.xml' declares entities")


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_MEMBERS", 3)
    with pytest.raises(ConversionError) as caught:
        DocumentArchive(zipped({str(number): "" for number in range(4)}))
    assert caught.value.detail == "the archive has 4 members, at most 3 are read"


def test_missing_and_encrypted_members_are_named() -> None:
    data = bytearray(zipped({"a.xml": "<a/>"}))
    central = data.rindex(b"PK\x01\x02")
    data[central + 8] |= 1
    assert failure(DocumentArchive(bytes(data)))[0] is FailureReason.PASSWORD
    assert failure(DocumentArchive(bytes(data)), "b.xml") == (
        FailureReason.DAMAGED,
        "the archive has no member 'b.xml'",
    )


def test_a_truncated_archive_is_damaged() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.xml", "<a/>")
    with pytest.raises(ConversionError) as caught:
        DocumentArchive(target.getvalue()[:-10])
    assert caught.value.reason is FailureReason.DAMAGED
