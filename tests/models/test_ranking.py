"""Tests of training questions of the served retriever, and of restoring a reader."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from restored import assert_alike

from models.data import DataError, Passage, Question
from models.mining.ranking import RetrievedQuestion, add_gold_passages, training_questions
from models.mining.retrievers import ScoredPassage
from models.network.architecture import Reader, dummy_inputs, load_body
from models.network.export import export_graph, quantise_embeddings, quantise_graph
from models.network.neurons import FLOAT_PART, split_outliers
from models.network.restoring import restore_weights
from models.steps.graphs import HEAD_NODES
from models.training.objective import absolute_relevance_loss
from winnow.domain.passage import Passage as Stored
from winnow.domain.reading import Reading


def found(text: str, distance: float = 0.8, title: str = "Town") -> ScoredPassage:
    return ScoredPassage(Passage(title, text), distance, 1.0)


GOLD = Question(
    text="Who founded it?",
    answers=("Ada",),
    source="squad",
    gold=Passage("Town", "Ada founded it in 1900."),
    answer_start=0,
)
PAIR = Question(text="Who mapped it?", answers=("Bo",), source="dpr-nq.dev")


class Scripted:
    """Reads the first word of a passage, and is the surer the longer it is."""

    def read_all(self, work: Sequence[tuple[str, Passage, float]], what: str) -> list[Reading]:
        return [
            Reading(
                passage=Stored("", "", p.text),
                start=0,
                end=p.text.index(" "),
                score=len(p.text),
                relevance=0,
                span_score=0,
                distance=0,
                hybrid_distance=0,
            )
            for _, p, _ in work
        ]


def positives(asked: list[RetrievedQuestion]) -> list[Question | None]:
    return add_gold_passages(asked, Scripted())  # type: ignore[arg-type]


def test_negatives_are_the_found_passages_without_an_answer_in_order() -> None:
    first, second = found("Cy paved it."), found("Di lit it.")
    assert GOLD.gold is not None
    bearing = found("It was Ada, they say."), found(GOLD.gold.text)
    asked = RetrievedQuestion(GOLD, (first, bearing[0], second, bearing[1]))
    passages, (made,) = training_questions([asked], positives([asked]))
    assert passages[made.positive] == GOLD.gold
    assert [passages[number] for number in made.negatives] == [first.passage, second.passage]


def test_a_training_question_has_every_accepted_answer() -> None:
    asked = RetrievedQuestion(replace(GOLD, answers=("Ada", "Ada L.")), (found("Cy paved it."),))
    _, (made,) = training_questions([asked], positives([asked]))
    assert (made.answer, made.answers) == ("Ada", ("Ada", "Ada L."))


def test_the_passage_in_which_a_reader_finds_the_answer_is_the_positive() -> None:
    near, right, surest = (
        found("They say Bo did.", 0.1),
        found("Bo mapped it."),
        found("Bo mapped it all."),
    )
    asked = RetrievedQuestion(PAIR, (near, right, surest))
    (answered,) = positives([asked])
    assert answered is not None
    assert answered.gold == surest.passage
    assert answered.answer_start == 0
    assert "Bo" in answered.answers


class Pointing(Scripted):
    """Reads the last "Bo" of a passage."""

    def read_all(self, work: Sequence[tuple[str, Passage, float]], what: str) -> list[Reading]:
        places = [(p, p.text.rindex("Bo")) for _, p, _ in work]
        return [
            Reading(
                passage=Stored("", "", p.text),
                start=n,
                end=n + 2,
                score=0,
                relevance=0,
                span_score=0,
                distance=0,
                hybrid_distance=0,
            )
            for p, n in places
        ]


def test_an_answer_that_stands_twice_is_learnt_where_the_reader_finds_it() -> None:
    twice = found("Near Bo the town begins, which Bo mapped.")
    (answered,) = add_gold_passages([RetrievedQuestion(PAIR, (twice,))], Pointing())  # type: ignore[arg-type]
    assert answered is not None
    assert answered.answer_start == twice.passage.text.rindex("Bo")


@pytest.mark.parametrize(("distance", "taken"), [(0.9, True), (1.2, False)])
def test_without_a_right_reading_the_nearest_passage_is_positive_if_near(
    distance: float, taken: bool
) -> None:
    bearing = found("They say Bo did.", distance)
    (answered,) = positives([RetrievedQuestion(PAIR, (found("Cy paved it."), bearing))])
    assert (answered is not None and answered.gold == bearing.passage) is taken


def test_a_question_without_any_answer_is_left_out() -> None:
    asked = RetrievedQuestion(PAIR, (found("Cy paved it."),))
    assert training_questions([asked], positives([asked])) == ([], [])


def test_the_positive_and_all_negatives_have_equal_weights() -> None:
    surely_wrong = absolute_relevance_loss(torch.tensor([[-9.0, -9.0, -9.0]]))
    surely_right = absolute_relevance_loss(torch.tensor([[9.0, -9.0, -9.0]]))
    always_yes = absolute_relevance_loss(torch.tensor([[9.0, 9.0, 9.0]]))
    assert surely_right < 1e-3
    torch.testing.assert_close(surely_wrong, always_yes, atol=1e-3, rtol=1e-3)


def test_a_reader_is_restored_from_its_int8_graph(tiny_weights: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    reader, path = Reader(load_body(tiny_weights)).eval(), tmp_path / "reader.onnx"
    inputs = dummy_inputs()
    with torch.no_grad():
        for weight in reader.parameters():  # equal ones would be written once
            weight.add_(torch.randn_like(weight) * 0.02)
    wanted = {name: weight.clone() for name, weight in reader.state_dict().items()}
    quantise_embeddings(reader.body)
    split_outliers(reader.body, [inputs])
    export_graph(reader, tmp_path / "float.onnx")
    quantise_graph(tmp_path / "float.onnx", path, (*HEAD_NODES, FLOAT_PART))
    other = Reader(load_body(tiny_weights)).eval()
    other.load_state_dict(restore_weights(path))
    assert_alike(other.state_dict(), wanted)


def test_another_graph_is_refused(tiny_weights: Path, tmp_path: Path) -> None:
    export_graph(Reader(load_body(tiny_weights)).eval(), tmp_path / "float.onnx")
    with pytest.raises(DataError, match="is not an int8 reader"):
        restore_weights(tmp_path / "float.onnx")
