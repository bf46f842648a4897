"""Question files: every format that is promised, every fault named."""

import gzip
from pathlib import Path

import pytest
import zstandard

from winnow.errors import ArtefactError
from winnow.labelled_questions import LabelledQuestion, read_questions, require_answers

LINES = (
    b'{"question": "Who?", "answers": ["Me"], "context": "It was me."}\n\n{"question": "Why?"}\n'
)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)],
)
def test_plain_and_compressed_files_read_alike(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"q.jsonl{suffix}"
    path.write_bytes(pack(LINES))  # type: ignore[operator]
    assert read_questions(path) == [
        LabelledQuestion("Who?", ("Me",), "It was me."),
        LabelledQuestion("Why?", ()),
    ]
    assert len(read_questions(path, limit=1)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question": "Who?"}\nnonsense\n', "line 2: not JSON: Expecting value at character 1;"),
        (b'{"ask": "Who?"}\n', "line 1: `question` must be a string that is not blank"),
        (b'{"question": "Who?", "answers": "Me"}\n', "`answers` must be a list"),
        (b"\xff\n", "line 1: invalid UTF-8 at byte 0"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b'{"question": "\\ud800"}\n', "line 1: lone surrogate"),
        (b"", "has no questions"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=message):
        read_questions(path)


def test_a_missing_file_and_a_broken_archive_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"nowhere\.jsonl"):
        read_questions(tmp_path / "nowhere.jsonl")
    broken = tmp_path / "q.jsonl.gz"
    broken.write_bytes(b"not gzip")
    with pytest.raises(ArtefactError, match="cannot read"):
        read_questions(broken)


def test_a_byte_order_mark_is_no_part_of_the_first_question(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINES)
    assert len(read_questions(path)) == 2


def test_blank_answers_are_none_and_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "Who?", "answers": [" ", ""]}\n{"question": "Why?"}\n')
    asked = read_questions(path)
    assert [each.answers for each in asked] == [(), ()]
    with pytest.raises(ArtefactError, match=r"none of 2 questions of .*q\.jsonl has answers"):
        require_answers(asked, path)
    require_answers([*asked, LabelledQuestion("How?", ("So",))], path)
