"""Tests of reading labelled texts."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from models.data import DataError
from models.heads.rows import Fields, Row, read_rows
from models.heads.task import collect_labels, unknown_label_warning
from winnow.heads.manifest import Kind

USUAL, TOKENS = Fields("text", "label"), Fields("tokens", "labels")
LINES = '{"text": "one, two", "label": "a"}\n\n{"text": "three", "label": 7}\n'
CSV = 'id,label,text\n1,a,"one, two"\n2,7,three\n'
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize(("form", "content"), [(".jsonl", LINES), (".csv", CSV)])
def test_csv_and_json_lines_are_read_plain_and_compressed(
    form: str, content: str, packed: str, tmp_path: Path
) -> None:
    path = tmp_path / f"data{form}{packed}"
    path.write_bytes(PACKERS[packed](content.encode()))
    rows = read_rows(path, Kind.SEQUENCE, USUAL)
    assert [(row.text, row.labels) for row in rows] == [("one, two", ("a",)), ("three", ("7",))]


def test_a_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbf" + b"text,label\none,a\n")
    assert read_rows(path, Kind.SEQUENCE, USUAL)[0].text == "one"


def test_several_labels_are_a_list_or_parts_of_a_column(tmp_path: Path) -> None:
    several = Fields("text", "label", multi_label=True)
    lines, table = tmp_path / "data.jsonl", tmp_path / "data.csv"
    lines.write_text('{"text": "x", "label": ["b", "a", "b"]}\n{"text": "y", "label": []}\n')
    table.write_text("text,label\nx,b | a\ny,\n")
    for path in (lines, table):
        rows = read_rows(path, Kind.SEQUENCE, several)
        assert [row.labels for row in rows] == [("b", "a"), ()]


def test_words_of_a_token_row_are_characters_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"tokens": ["New", "York", "!"], "labels": ["B-x", "I-x", "O"]}))
    (row,) = read_rows(path, Kind.TOKEN, TOKENS)
    assert row.text == "New York !"
    assert [row.text[start:end] for start, end in row.words] == ["New", "York", "!"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.txt", "a", "neither .csv nor .jsonl"),
        ("data.jsonl", "", "has no rows"),
        ("data.csv", "text,label\n", "has no rows"),
        ("data.jsonl", '{"text": "x"', "line 1: not JSON"),
        ("data.jsonl", '["x"]', "line 1: not a JSON object"),
        ("data.jsonl", '{"sentence": "x", "label": "a"}', "no field 'text' among 'sentence'"),
        ("data.csv", "text,intent\nx,a\n", "no field 'label' among 'text', 'intent'"),
        ("data.csv", "text,label\nx\n", "row 1: no value for 'label'"),
        ("data.csv", "text,label\nhello, you,a\n", "more fields than the header: put texts"),
        ("data.csv", "text;label\nx;a\n", "'text;label': separate the fields with commas"),
        ("data.csv", "text\tlabel\nx\ta\n", "separate the fields with commas"),
        ("data.jsonl", '{"text": "x", "label": ["a"]}', "set --multi-label"),
        ("data.csv", "text,label\n  ,a\n", "row 1: text is '  ': a text is needed"),
        ("data.jsonl", '{"text": "x", "label": " "}', "which is no label"),
        ("data.jsonl", '{"text": "x", "label": 0.5}', "label is '0.5'"),
        ("data.jsonl", '{"text": ["x"], "label": "a"}', "a text is needed"),
        ("data.jsonl", b"\xff\xfe", "is not UTF-8"),
        ("data.jsonl.gz", b"no gzip", "cannot read"),
    ],
)
def test_an_invalid_labelled_text_is_refused_with_its_row(
    name: str, content: str | bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Exception, match="data") as refused:
        read_rows(path, Kind.SEQUENCE, USUAL)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tokens": ["a"], "labels": ["O", "O"]}, "1 tokens but 2 labels"),
        ({"tokens": [], "labels": []}, "no token"),
        ({"tokens": ["a", " "], "labels": ["O", "O"]}, "an empty token"),
        ({"tokens": ["a"], "labels": ["person"]}, "token labels are O, B-… and I-…"),
        ({"tokens": ["a"], "labels": ["B-"]}, "token labels are"),
        ({"tokens": "a", "labels": ["O"]}, "a list of texts is needed"),
    ],
)
def test_an_invalid_token_row_is_refused(row: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError, match="row 1") as refused:
        read_rows(path, Kind.TOKEN, TOKENS)
    assert said in str(refused.value)


def test_a_table_of_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("tokens,labels\na,O\n")
    with pytest.raises(DataError, match="JSON lines"):
        read_rows(path, Kind.TOKEN, TOKENS)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file .*nowhere\.csv"):
        read_rows(tmp_path / "nowhere.csv", Kind.SEQUENCE, USUAL)


def test_a_single_label_is_refused() -> None:
    with pytest.raises(DataError, match="only the label 'a'"):
        collect_labels([Row("x", ("a",)), Row("y", ("oos",))], Kind.SEQUENCE, "oos")
    with pytest.raises(DataError, match="no label"):
        collect_labels([Row("x", ())], Kind.SEQUENCE, "")
    with pytest.raises(DataError, match="no label but O"):
        collect_labels([Row("x", ("O",), ((0, 1),))], Kind.TOKEN, "")


def test_token_heads_have_both_sides_of_each_entity() -> None:
    rows = [Row("x y", ("B-b", "O"), ((0, 1), (2, 3))), Row("z", ("I-a",), ((0, 1),))]
    assert collect_labels(rows, Kind.TOKEN, "") == ("O", "B-a", "I-a", "B-b", "I-b")


def test_rows_with_labels_that_training_lacks_are_counted_and_their_labels_named() -> None:
    rows = [Row("x", (label,)) for label in ("a", "oos", *(f"n{n}" for n in range(7)))]
    told = unknown_label_warning(rows, ("a", "b"), "oos", "test.csv")
    assert told == (
        "test.csv: 7 of 9 texts with labels that the training texts lack, counted as wrong: "
        "'n0', 'n1', 'n2', 'n3', 'n4' and 2 more"
    )
    assert unknown_label_warning(rows[:2], ("a", "b"), "oos", "test.csv") == ""
