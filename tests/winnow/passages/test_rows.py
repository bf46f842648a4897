"""Passage files: what is read, and how every fault is named."""

import gzip
from pathlib import Path

import pytest
import zstandard
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.errors import ArtefactError
from winnow.passages.rows import BadRow, Row, read_rows
from winnow.passages.validation import MAX_DEPTH


def rows(path: Path, content: bytes) -> list[Row | BadRow]:
    path.write_bytes(content)
    return list(read_rows(path))


def test_tsv_with_and_without_header_and_csv_quotes(tmp_path: Path) -> None:
    content = b'id\ttext\ttitle\n1\t"He said ""no""."\tA "B"\n2\t"Yes" and "no"\tC\n'
    got = rows(tmp_path / "p.tsv", content)
    assert got == [
        Row(2, Put(Passage("1", 'A "B"', 'He said "no".'))),
        Row(3, Put(Passage("2", "C", '"Yes" and "no"'))),
    ]
    assert rows(tmp_path / "q.tsv", b"1\ta\tT\n") == [Row(1, Put(Passage("1", "T", "a")))]


def test_a_header_in_another_order_is_refused_before_titles_become_texts(tmp_path: Path) -> None:
    for header in (b"id\ttitle\ttext", b'"Title"\t"Text"\t"ID"'):
        with pytest.raises(ArtefactError, match="put them in the order id, text, title"):
            rows(tmp_path / "p.tsv", header + b"\n1\tT\ta\n")


def test_json_lines_with_metadata_and_number_ids(tmp_path: Path) -> None:
    got = rows(
        tmp_path / "p.jsonl",
        '{"id": 7, "text": "é", "metadata": {"a": 1}}\n\n{"id": "b", "title": "T", "text": "x"}\n'.encode(),
    )
    assert got == [
        Row(1, Put(Passage("7", "", "é", '{"a": 1}'))),
        Row(3, Put(Passage("b", "T", "x"))),
    ]


@pytest.mark.parametrize(
    ("tenant", "tenants", "refusal"),
    [
        ("null", False, ""),
        ('""', False, ""),
        ('"acme"', False, "tenant is acme, but the index gets no tenants: add --tenants"),
        ("7", True, ""),
        ("null", True, "tenant is missing"),
        ("true", True, "tenant is true or false, expected a string"),
        ('"a b"', True, "tenant 'a b' is not 1 to 64 letters"),
    ],
)
def test_a_row_has_a_tenant_if_and_only_if_the_index_has_tenants(
    tmp_path: Path, tenant: str, tenants: bool, refusal: str
) -> None:
    """Without --tenants, every caller could read the passages of all tenants."""
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"id": "a", "text": "x", "tenant": {tenant}}}')
    (row,) = read_rows(path, tenants=tenants)
    if refusal:
        assert isinstance(row, BadRow)
        assert row.reason.startswith(refusal)
    else:
        assert isinstance(row, Row)


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)]
)
def test_compressed_files(tmp_path: Path, suffix: str, pack: object) -> None:
    got = rows(tmp_path / f"p.tsv{suffix}", pack(b"1\ta\tT\r\n"))  # type: ignore[operator]
    assert got == [Row(1, Put(Passage("1", "T", "a")))]


def metadata(value: bytes) -> bytes:
    return b'{"id": "a", "text": "x", "metadata": {"m": %s}}' % value


@pytest.mark.parametrize("value", ["1e300", "12345678901234567890", "null", '"\\u0000"', "[[{}]]"])
def test_metadata_that_is_kept_can_be_sent_as_a_struct(tmp_path: Path, value: str) -> None:
    (row,) = rows(tmp_path / "p.jsonl", metadata(value.encode()))
    assert isinstance(row, Row)
    sent = json_format.Parse(row.passage.metadata, Struct()).SerializeToString()
    assert Struct.FromString(sent).fields["m"]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_deepest_metadata_that_is_kept_can_be_sent(
    tmp_path: Path, opening: str, closing: str
) -> None:
    inner = opening * (MAX_DEPTH - 2) + "1" + closing * (MAX_DEPTH - 2)
    (row,) = rows(tmp_path / "p.jsonl", metadata(inner.encode()))
    assert isinstance(row, Row)
    sent = json_format.Parse(row.passage.metadata, Struct()).SerializeToString()
    assert Struct.FromString(sent).fields["m"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", b"\xef\xbb\xbfid\ttext\ttitle\r\n1\ta\tT\r\n"),
        ("p.jsonl", b'\xef\xbb\xbf\n{"id": "1", "title": "T", "text": "a"}\r\n'),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_first_line(
    tmp_path: Path, name: str, content: bytes
) -> None:
    assert rows(tmp_path / name, content) == [Row(2, Put(Passage("1", "T", "a")))]
    with_mark = b"\xef\xbb\xbf1\ta\tT\n"
    assert rows(tmp_path / "q.tsv", with_mark) == [Row(1, Put(Passage("1", "T", "a")))]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("p.tsv", b"1\ttext", "2 columns, expected 3, separated by tabs: id, text, title"),
        ("p.tsv", b"only words", "1 column, expected 3"),
        ("p.tsv", b"1\ta\tb\tc", "4 columns"),
        ("p.tsv", b"1\t  \tT", "text is empty: a passage needs a text (id 1)"),
        ("p.tsv", b"\ttext\tT", "id is empty"),
        ("p.tsv", b"1\t\xff\tT", "invalid UTF-8 at byte 2"),
        ("p.jsonl", b"{", "not JSON"),
        ("p.json", b"[", "Expecting value at character 2; each line must be one whole JSON"),
        ("p.json", b'{"id":', "Expecting value at character 7; each line must"),
        ("p.jsonl", b"[1]", "expected a JSON object, found a list"),
        ("p.jsonl", b'{"id": "a', "not JSON: Unterminated string starting at character 8"),
        ("p.jsonl", b'{"id": "a", "Text": "x"}', "text is missing; the fields are: id, Text"),
        ("p.jsonl", b"{}", "id is missing; the fields are: (none)"),
        ("p.jsonl", b'{"id": "a", "text": "x", "title": null}', "title is null, expected a string"),
        ("p.jsonl", b'{"id": "a", "text": "x", "version": "3"}', 'version is "3", expected an int'),
        ("p.jsonl", b'{"id": "a"}', "text is missing"),
        ("p.jsonl", b'{"text": "a"}', "id is missing"),
        ("p.jsonl", b'{"id": "a", "text": 5}', "text is a number, expected a string"),
        (
            "p.jsonl",
            b'{"id": "a", "text": "x", "metadata": 5}',
            "metadata is a number, expected an object",
        ),
        ("p.jsonl", b'{"id": "a", "text": "\\ud800"}', "lone surrogate"),
        ("p.jsonl", b"[" * 100_000, "not JSON"),
        ("p.jsonl", b'{"id": true, "text": "x"}', "id is true or false, expected a string"),
        ("p.jsonl", b'{"id": "a\\u0000", "text": "x"}', "has a control character"),
        ("p.jsonl", b'{"id": "%s", "text": "x"}' % (b"a" * 600), "id has 600 characters"),
        (
            "p.tsv",
            b"1\t" + b"x " * 1_000_000 + b"\tT",
            "text has 2000000 characters, at most 10000 are allowed: cut it",
        ),
        (
            "p.tsv",
            b"1\tx\t" + b"T" * 20_000,
            "title has 20000 characters, at most 1000 are allowed",
        ),
        ("p.tsv", b" \tx\tT", "id is empty"),
        ("p.jsonl", metadata(b"NaN"), "not JSON: NaN is not a JSON number"),
        ("p.jsonl", metadata(b"[1, -Infinity]"), "not JSON: -Infinity is not a JSON number"),
        (
            "p.jsonl",
            metadata(b"1e999"),
            "metadata 'm' has a number that is infinite or too large: write it as a string",
        ),
        (
            "p.jsonl",
            metadata(b"1" + b"0" * 400),
            "metadata 'm' has a number that is infinite or too large: write it as a string",
        ),
        ("p.jsonl", metadata(b'"\\ud800"'), "metadata 'm' has a lone surrogate"),
        (
            "p.jsonl",
            metadata(b"[" * 20 + b"]" * 20),
            "metadata 'm' is nested deeper than 20 levels",
        ),
        (
            "p.jsonl",
            metadata(b'"%s"' % (b"m" * 200_000)),
            "metadata has 200009 characters, at most 10000 are allowed",
        ),
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
    with pytest.raises(ArtefactError, match="unknown format"):
        rows(tmp_path / "p.pdf", b"")
    with pytest.raises(ArtefactError, match="cannot read"):
        rows(tmp_path / "p.tsv.zst", b"not zstandard")
    whole = gzip.compress(b"1\ta\tT\n" * 1000)
    with pytest.raises(ArtefactError, match="cannot read"):
        rows(tmp_path / "p.tsv.gz", whole[: len(whole) // 2])
    (tmp_path / "directory.tsv").mkdir()
    with pytest.raises(ArtefactError, match=r"directory\.tsv"):
        list(read_rows(tmp_path / "directory.tsv"))
