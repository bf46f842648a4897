"""Passage files: what is read, and how every fault is named."""

import gzip
from pathlib import Path

import pytest
import zstandard

from content_node.indexing.rows import BadRow, Row, read_rows
from winnow.domain.passage import Passage
from winnow.errors import ArtefactError


def rows(path: Path, content: bytes) -> list[Row | BadRow]:
    path.write_bytes(content)
    return list(read_rows(path))


def test_tsv_with_and_without_header_and_csv_quotes(tmp_path: Path) -> None:
    content = b'id\ttext\ttitle\n1\t"He said ""no""."\tA "B"\n2\t"Yes" and "no"\tC\n'
    got = rows(tmp_path / "p.tsv", content)
    assert got == [
        Row(2, Passage("1", 'A "B"', 'He said "no".'), "{}"),
        Row(3, Passage("2", "C", '"Yes" and "no"'), "{}"),
    ]
    assert rows(tmp_path / "q.tsv", b"1\ta\tT\n") == [Row(1, Passage("1", "T", "a"), "{}")]


def test_json_lines_with_metadata_and_number_ids(tmp_path: Path) -> None:
    got = rows(
        tmp_path / "p.jsonl",
        '{"id": 7, "text": "é", "metadata": {"a": 1}}\n\n{"id": "b", "title": "T", "text": "x"}\n'.encode(),
    )
    assert got == [
        Row(1, Passage("7", "", "é"), '{"a": 1}'),
        Row(3, Passage("b", "T", "x"), "{}"),
    ]


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)]
)
def test_compressed_files(tmp_path: Path, suffix: str, pack: object) -> None:
    got = rows(tmp_path / f"p.tsv{suffix}", pack(b"1\ta\tT\r\n"))  # type: ignore[operator]
    assert got == [Row(1, Passage("1", "T", "a"), "{}")]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("p.tsv", b"1\ttext", "2 columns, expected 3"),
        ("p.tsv", b"1\ta\tb\tc", "4 columns"),
        ("p.tsv", b"1\t  \tT", "empty text"),
        ("p.tsv", b"\ttext\tT", "empty id"),
        ("p.tsv", b"1\t\xff\tT", "invalid UTF-8 at byte 2"),
        ("p.jsonl", b"{", "not JSON"),
        ("p.jsonl", b"[1]", "expected a JSON object, found list"),
        ("p.jsonl", b'{"id": "a"}', "text is missing"),
        ("p.jsonl", b'{"text": "a"}', "id is missing"),
        ("p.jsonl", b'{"id": "a", "text": 5}', "text is missing or not a string"),
        ("p.jsonl", b'{"id": "a", "text": "x", "metadata": 5}', "metadata is int"),
        ("p.jsonl", b'{"id": "a", "text": "\\ud800"}', "lone surrogate"),
        ("p.jsonl", b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_row_is_named_by_line_and_reason(
    tmp_path: Path, name: str, line: bytes, reason: str
) -> None:
    good = b"ok\tok\tok" if name.endswith("tsv") else b'{"id": "ok", "text": "ok"}'
    got = rows(tmp_path / name, good + b"\n" + line + b"\n")
    assert isinstance(got[0], Row)
    assert isinstance(got[1], BadRow)
    assert got[1].line == 2
    assert reason in got[1].reason


def test_an_unknown_format_and_a_broken_archive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="cannot tell the format"):
        rows(tmp_path / "p.pdf", b"")
    with pytest.raises(ArtefactError, match="cannot read"):
        rows(tmp_path / "p.tsv.zst", b"not zstandard")
    whole = gzip.compress(b"1\ta\tT\n" * 1000)
    with pytest.raises(ArtefactError, match="cannot read"):
        rows(tmp_path / "p.tsv.gz", whole[: len(whole) // 2])
