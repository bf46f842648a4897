"""Passages that the served retriever found, and that a later run uses again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models.data import DataError, Passage, Question
from models.mining.ranking import RetrievedQuestion
from models.mining.retrieved_file import encoder_origin, read_retrieved
from models.mining.retrievers import ScoredPassage
from models.steps.calibration import ranked_passages
from models.steps.ranking import retrieve_for_training
from winnow.bundle import Bundle


@dataclass
class ScriptedRetriever:
    """Finds one passage for each question, and records the questions."""

    fingerprint: str = "one"
    asked: list[str] = field(default_factory=list)

    def find(self, question: str, vector: NDArray[np.float32], k: int) -> Sequence[ScoredPassage]:
        self.asked.append(question)
        return [ScoredPassage(Passage(self.fingerprint, question), 0.5, 1.0)]


def retrieve(
    texts: list[str],
    retriever: ScriptedRetriever,
    bundle: Bundle,
    file: Path,
    excluded: tuple[str, ...] = (),
) -> list[RetrievedQuestion]:
    questions = [Question(text=text, answers=("x",), source="s") for text in texts]
    return retrieve_for_training(questions, retriever, bundle, set(excluded), file)  # type: ignore[arg-type]


def test_a_later_run_retrieves_only_what_is_missing(bundle: Bundle, tmp_path: Path) -> None:
    file, retriever = tmp_path / "found.jsonl", ScriptedRetriever()
    first = retrieve(["Who won?"], retriever, bundle, file)
    assert retrieve(["Who won?"], retriever, bundle, file) == first
    with file.open("a") as cut:
        cut.write('{"question": "Wh')
    both = retrieve(["Who won?", "Who lost?"], retriever, bundle, file)
    assert retriever.asked == ["Who won?", "Who lost?"]
    assert read_retrieved(file, encoder_origin(bundle)) == {
        each.question.text: list(each.passages) for each in both
    }


def test_passages_of_another_origin_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "found.jsonl"
    retrieve(["Who won?"], ScriptedRetriever(), bundle, file)
    with pytest.raises(DataError, match=f"{file} were retrieved with another index:"):
        retrieve(["Who won?"], ScriptedRetriever("two"), bundle, file)
    with pytest.raises(DataError, match="another set of excluded passages:"):
        retrieve(["Who won?"], ScriptedRetriever(), bundle, file, ("a",))
    encoder = bundle.manifest.encoder.model_copy(update={"max_question_tokens": 9})
    other = replace(bundle, manifest=bundle.manifest.model_copy(update={"encoder": encoder}))
    with pytest.raises(DataError, match="another encoder:"):
        read_retrieved(file, encoder_origin(other))
    file.write_bytes(file.read_bytes().partition(b"\n")[2])  # as an older version wrote it
    with pytest.raises(DataError, match="another encoder:"):
        read_retrieved(file, encoder_origin(bundle))


def test_found_passages_are_ranked_with_the_current_word_weight() -> None:
    found = [
        ScoredPassage(Passage("", "words"), 0.5, 10.0),
        ScoredPassage(Passage("", "near"), 0.4, 1.0),
    ]
    for weight, first in ((0.03, "words"), (0.001, "near")):
        assert ranked_passages(found, weight)[0].passage.text == first
