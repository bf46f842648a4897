"""Tests of token vectors that calibration keeps in a file."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.data import Passage
from models.measuring.token_scores import TokenScores
from winnow.bundle import Bundle
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.reading.stored_passage import StoredPassage

TEXTS = ["one", "two", "three", "four"]
PASSAGES = [Passage("", text) for text in TEXTS]


def test_token_vectors_survive_an_interruption_and_a_damaged_file(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    computed: list[str] = []
    interrupted = {"three"}

    def levels(_: PassageTokens, stored: StoredPassage) -> NDArray[np.int8]:
        if stored.passage.text in interrupted:
            raise KeyboardInterrupt
        computed.append(stored.passage.text)
        return np.zeros((3, 32), np.int8)

    monkeypatch.setattr(PassageTokens, "levels", levels)
    with pytest.raises(KeyboardInterrupt):
        TokenScores(bundle, tmp_path).prepare(PASSAGES)
    interrupted.clear()
    computed.clear()
    TokenScores(bundle, tmp_path).prepare(PASSAGES)
    assert not {"one", "two"} & set(computed)
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-50])
    computed.clear()
    TokenScores(bundle, tmp_path).prepare(PASSAGES)
    assert sorted(computed) == sorted(TEXTS)
    assert f"{file} is damaged" in capsys.readouterr().err
