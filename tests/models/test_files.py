"""Tests of reading data and weights, and of errors about missing files."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import torch
import zstandard

from models.data import DataError, Passage, read_passages, read_questions
from models.network.weights import WeightsError, open_minilm
from models.training import checkpoint


@pytest.mark.parametrize("packed", [False, True])
def test_questions_are_read_plain_and_compressed(tmp_path: Path, packed: bool) -> None:
    rows = [
        {"question": "who?", "answers": ["a", "b"], "title": "T", "context": "a b"},
        {
            "question": "what?",
            "answer": "c",
            "answer_start": 3,
            "title": "U",
            "context": "an c",
            "source": "s",
        },
        {"question": "where?", "answers": ["d"], "source": "p"},
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = tmp_path / ("q.jsonl.zst" if packed else "q.jsonl")
    path.write_bytes(zstandard.ZstdCompressor().compress(content) if packed else content)
    first, second, third = read_questions(path)
    assert (first.answers, first.gold) == (("a", "b"), Passage("T", "a b"))
    assert (second.answers, second.answer_start, second.source) == (("c",), 3, "s")
    assert third.gold is None


def test_every_nth_passage_of_a_tsv_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{n}\ttext {n}\ttitle {n}\n" for n in range(6)))
    assert [p.text for p in read_passages(path, 3)] == ["text 0", "text 3"]


def test_a_missing_data_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"q\.jsonl is missing: set --data"):
        read_questions(tmp_path / "q.jsonl")


def test_weights_with_another_checksum_are_refused(tiny_weights: Path) -> None:
    with pytest.raises(WeightsError, match="SHA-256"), open_minilm(tiny_weights):
        pass


def test_weights_that_lack_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"no config\.json"), open_minilm(tmp_path):
        pass


def test_weights_must_be_a_wheel_or_a_directory(tmp_path: Path) -> None:
    with (
        pytest.raises(WeightsError, match="neither a directory nor a wheel"),
        open_minilm(tmp_path / "x"),
    ):
        pass


def test_weights_are_read_from_a_wheel(
    tiny_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    digest = hashlib.sha256((tiny_weights / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setattr("models.network.weights.MINILM_SHA256", digest)
    wheel = tmp_path / "tiny.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            archive.write(tiny_weights / name, f"package/model/{name}")
    with open_minilm(wheel) as directory:
        assert (directory / "tokenizer.json").is_file()


def test_a_checkpoint_is_complete_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.pt"
    assert checkpoint.load(path) is None
    checkpoint.save(path, {"step": 3, "weights": torch.arange(3)})
    checkpoint.save(path, {"step": 4, "weights": torch.arange(4)})
    state = checkpoint.load(path)
    assert state is not None
    assert state["step"] == 4
    assert [p.name for p in path.parent.iterdir()] == ["run.pt"]
