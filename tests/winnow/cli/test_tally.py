"""Figures from replies."""

import pytest

from winnow.cli.asking import QuestionOutcome
from winnow.cli.evaluation.tally import build_report
from winnow.labelled_questions import LabelledQuestion
from winnow.v1 import answer_pb2


def reply(
    *answers: tuple[str, str, float, float], max_loss: float | None = 0.0
) -> answer_pb2.AnswerResponse:
    """A reply with (text, passage, score, distance) answers, best score first."""
    ordered = sorted(answers, key=lambda answer: -answer[2])
    return answer_pb2.AnswerResponse(
        answers=[
            answer_pb2.Answer(
                text=text,
                passage=answer_pb2.Passage(id=passage, text=passage),
                score=score,
                distance=distance,
            )
            for text, passage, score, distance in ordered
        ],
        passages_read=len(answers) + 1,
        passages_needed=len(answers),
        max_loss=max_loss,
        coverage=answer_pb2.Coverage(complete=True),
    )


ASKED = LabelledQuestion("Who?", ("Ada",), "by Ada in full")


def test_reading_fewer_passages_is_told_from_one_reply() -> None:
    far_but_right = reply(("Bob", "about Bob", 1.0, 0.1), ("Ada", "by Ada in full", 5.0, 0.9))
    found = build_report([QuestionOutcome(ASKED, far_but_right, 0.02)], max_passages=2)
    one, two = found.figures
    assert (one.passages, one.exact_match, one.recall_by_answer, one.recall_by_passage) == (
        1,
        0,
        0,
        0,
    )
    assert (two.passages, two.exact_match, two.recall_by_answer, two.recall_by_passage) == (
        2, 100, 100, 100,
    )  # fmt: skip
    assert found.p50_ms == pytest.approx(20)


def test_an_accepted_answer_may_be_in_the_sentence_of_a_wrong_one() -> None:
    wrong = reply(("full", "by Ada in full", 1.0, 0.1))
    found = build_report([QuestionOutcome(ASKED, wrong, 0.01)], max_passages=1)
    assert found.figures[0].in_sentence is None, "an old front names no sentence"
    wrong.answers[0].sentence_start, wrong.answers[0].sentence_end = 0, 14
    found = build_report([QuestionOutcome(ASKED, wrong, 0.01)], max_passages=1)
    assert (found.figures[0].exact_match, found.figures[0].in_sentence) == (0, 100)
    wrong.answers[0].sentence_start = 7
    found = build_report([QuestionOutcome(ASKED, wrong, 0.01)], max_passages=1)
    assert found.figures[0].in_sentence == 0


def test_a_failed_question_counts_as_wrong() -> None:
    good = reply(("Ada", "by Ada in full", 1.0, 0.1))
    late = "DEADLINE_EXCEEDED: too late"
    found = build_report(
        [QuestionOutcome(ASKED, good, 0.01), QuestionOutcome(ASKED, None, 0.5, late)],
        max_passages=1,
    )
    assert (found.questions, found.failed) == (2, 1)
    assert found.errors == {"DEADLINE_EXCEEDED": 1}
    assert found.said == {"DEADLINE_EXCEEDED": late}
    assert found.figures[0].exact_match == 50
    assert found.p99_ms == pytest.approx(10)


def test_a_failed_question_is_wrong_even_if_its_answer_is_an_article() -> None:
    article = LabelledQuestion("Which grade?", ("A",))
    found = build_report([QuestionOutcome(article, None, 0.5, "CANCELLED: no")], max_passages=1)
    assert (found.figures[0].exact_match, found.figures[0].f1) == (0, 0)


def test_all_answers_count_if_each_shard_read_its_best_passages() -> None:
    far_but_right = reply(("Bob", "about Bob", 1.0, 0.1), ("Ada", "by Ada in full", 5.0, 0.9))
    far_but_right.read_scope = answer_pb2.READ_SCOPE_PER_SHARD
    far_but_right.passages_read = 2
    found = build_report([QuestionOutcome(ASKED, far_but_right, 0.02)], max_passages=1)
    (figures,) = found.figures
    assert (figures.passages, figures.exact_match, figures.recall_by_passage) == (1, 100, 100)
    far_but_right.passages_read = 3
    found = build_report([QuestionOutcome(ASKED, far_but_right, 0.02)], max_passages=1)
    assert found.figures[0].recall_by_passage is None, "the reply lacks a passage"


def test_a_question_without_answers_is_counted_apart() -> None:
    good = reply(("Ada", "by Ada in full", 1.0, 0.1))
    bare = LabelledQuestion("Why?", ())
    found = build_report(
        [QuestionOutcome(ASKED, good, 0.01), QuestionOutcome(bare, good, 0.01)], max_passages=1
    )
    assert (found.questions, found.without_answers) == (2, 1)
    assert found.figures[0].exact_match == 100


def test_early_stopping_has_accuracy_and_no_recall() -> None:
    whole = reply(("Ada", "by Ada in full", 5.0, 0.1), ("Bob", "of Bob", 1.0, 0.9))
    early = reply(("Ada", "by Ada in full", 5.0, 0.1), max_loss=0.3)
    found = build_report(
        [QuestionOutcome(ASKED, whole, 0.01), QuestionOutcome(ASKED, early, 0.01)], max_passages=2
    )
    assert (found.max_loss, found.passages_read, found.passages_needed) == (0.3, 2.5, 1.5)
    for figures in found.figures:
        assert figures.exact_match == 100
        assert (figures.recall_by_answer, figures.recall_by_passage) == (None, None)


@pytest.mark.parametrize(("asked", "recall"), [(0.0, 100), (0.3, None), (None, None)])
def test_the_requested_max_loss_counts_where_an_old_front_names_none(
    asked: float | None, recall: float | None
) -> None:
    old = reply(("Ada", "by Ada in full", 5.0, 0.1), max_loss=None)
    old.ClearField("passages_needed")
    found = build_report([QuestionOutcome(ASKED, old, 0.01)], 1, asked)
    assert (found.max_loss, found.passages_needed) == (asked, None)
    assert found.figures[0].recall_by_answer == recall


@pytest.mark.parametrize(
    ("max_loss", "granted", "needed", "dimmed"),
    [(0.0, 10, 10, 0), (0.0, 6, 6, 1), (0.3, 6, 2, 0), (0.3, 6, 6, 1)],
)
def test_replies_that_were_let_read_too_little_are_counted(
    max_loss: float, granted: int, needed: int, dimmed: int
) -> None:
    said = reply(("Ada", "by Ada in full", 5.0, 0.1), max_loss=max_loss)
    said.passages_asked, said.passages_granted, said.passages_needed = 10, granted, needed
    assert (
        build_report([QuestionOutcome(ASKED, said, 0.01)] * 3, max_passages=1).dimmed == 3 * dimmed
    )
