"""Property tests: damaged files of each format never stop the conversion."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from document_files import Typed, docx, epub, paragraph, pdf, pptx, shape
from hypothesis import given, settings
from hypothesis import strategies as st
from tenacious import LONG

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.conversion.protocol import ConversionLimits, Converted
from winnow.documents.document import Document
from winnow.documents.failures import FailureReason

PAGE = "<html><body><h1>Areas</h1><table><tr><th>a<th>b<tr><td>1<td>2</table><ul><li>x</ul></body>"
FILES = {
    "a.pdf": pdf([[Typed("Areas", 50, 50, 20), Typed("Text", 50, 90)]], "T", [("Areas", 0)]),
    "a.docx": docx(paragraph("Areas", "berschrift1") + paragraph("Text"), "T"),
    "a.pptx": pptx([shape("Areas", kind="title") + shape("main")], {0: shape("n", kind="body")}),
    "a.epub": epub({"a.xhtml": PAGE}, title="T"),
    "a.html": PAGE.encode(),
    "a.md": b"---\ntitle: T\n---\n# Areas\n\n* a\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx\n```\n",
    "a.rst": b"Areas\n=====\n\n* a :ref:`b <c>`\n\n.. note:: x\n\n.. py:function:: f(x)\n\n   Text\n",
    "a.txt": "Areas\n=====\n\n  * größer\n\n1.1 Text\n\f[Page 1]\n".encode("utf-16"),
}
"""A small file of each format."""
CONVERTING = {FailureReason.CRASHED, FailureReason.TOO_SLOW, FailureReason.TOO_MUCH_MEMORY}
"""Reasons that a small damaged file must not give."""


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draws a truncated, changed or random file."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    end = draw(st.integers(1, len(data)))
    changed = bytearray(data[:end] if draw(st.booleans()) else data)
    for _ in range(draw(st.integers(0, 8))):
        place = draw(st.integers(0, len(changed) - 1))
        match draw(st.sampled_from(["set", "drop", "insert"])):
            case "set":
                changed[place] = draw(st.integers(0, 255))
            case "drop":
                del changed[place : place + draw(st.integers(1, 30))]
                changed = changed or bytearray(b"x")
            case "insert":
                changed[place:place] = draw(st.binary(max_size=30))
    return bytes(changed)


@pytest.fixture(scope="module")
def converter() -> Iterator[DocumentConverter]:
    with DocumentConverter(workers=1, limits=ConversionLimits(seconds=LONG)) as shared:
        yield shared


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_converted(name: str, folder: Path, converter: DocumentConverter) -> None:
    """The damage of the next test is then the cause of its failures."""
    assert "Areas" in _text(_converted(converter, folder / name, FILES[name]))


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=12)
@given(data=st.data())
def test_a_damaged_file_has_a_document_or_a_reason(
    name: str, data: st.DataObject, folder: Path, converter: DocumentConverter
) -> None:
    """Files may also have the extension of another format."""
    path = folder / data.draw(st.sampled_from([name, name, *FILES]))
    result = _converted(converter, path, data.draw(damaged(FILES[name])))
    if isinstance(result, Document):
        _check(result)
    else:
        assert result.reason not in CONVERTING, result
        assert result.detail


def _converted(converter: DocumentConverter, path: Path, data: bytes) -> Converted:
    path.write_bytes(data)
    ((_, result),) = converter.convert([path])
    return result


def _text(result: Converted) -> str:
    assert isinstance(result, Document), result
    _check(result)
    return result.text


def _check(document: Document) -> None:
    """Checks what all documents have in common."""
    assert document.text.encode()
    assert document.format
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end
        assert block.start == 0 or re.fullmatch(r"\n\n?", document.text[end : block.start])
        assert document.text[block.start : block.end].strip()
        end = block.end
    assert end == len(document.text)
