"""The benchmark of documents: its collection, and what it judges as right."""

import hashlib
import html
import json
import re
import zipfile
from pathlib import Path

import pytest

from bench.documents.asking import judged_reply
from bench.documents.collection import Question, read_collection
from bench.documents.figures import (
    JudgedReply,
    calibration_error,
    figures_of,
    refusal_threshold,
)
from bench.documents.judging import (
    FoundAnswer,
    FoundPassage,
    contains_any,
    is_gold,
    is_right_sentence,
    is_right_span,
)
from winnow.client.reply_messages import reply_of_message
from winnow.v1 import answer_pb2

DIRECTORY = Path(__file__).parents[2] / "bench" / "documents"
COLLECTION = read_collection(DIRECTORY)
ANSWERABLE = [each for each in COLLECTION.questions if each.answers]

ENDED = re.compile(r"</(?:w:p|a:p|p|h\d|li|td|th|tr|div|dt|dd|pre|a)>|<br\s*/?>|<w:(?:br|tab)/>")
TAG = re.compile(r"<[a-zA-Z!?/][^<>]*>")
MARKUP = re.compile(
    r"\]\([^)]*\)|\]\[[^\]]*\]|\*\*|\s*<http[^<>]*>`_*|(?::[\w:]+:|\{\w+\})(?=`)|~(?:\w+\.)+|(?<=\w)_\b"
)
MEMBER = re.compile(r"word/document\.xml|ppt/slides/slide\d+\.xml|.*\.x?html")
QUESTION = Question(
    id="q1",
    text="Which areas has the archive?",
    answers=("main, contrib and non-free", "main"),
    sentence="The archive has the areas main, contrib and non-free.",
    document="policy.html",
    kind="html",
)
OTHER = Question(id="q2", text="Who won?", answers=(), sentence="", document="", kind="")
PASSAGE = FoundPassage(
    "policy.html", "Areas. The archive has the areas main, contrib and non-free."
)
ELSEWHERE = FoundPassage("faq.html", PASSAGE.text)


def found(span: str, confidence: float = 0.5, passage: FoundPassage = PASSAGE) -> FoundAnswer:
    return FoundAnswer(
        span=span,
        sentence=QUESTION.sentence,
        passage=passage,
        score=1.0,
        confidence=confidence,
    )


def reply(
    question: Question,
    span: str,
    *,
    shown: bool = True,
    confidence: float = 0.5,
    retrieved: tuple[FoundPassage, ...] = (),
) -> JudgedReply:
    best = found(span, confidence)
    return JudgedReply(question=question, shown=shown, best=best, retrieved=retrieved)


def plain_text(path: Path) -> str:
    """Extracts text without the converters, so that they do not decide what is an answer."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if MEMBER.fullmatch(name)]
            parts = [archive.read(name).decode() for name in members]
    else:
        parts = [path.read_text("utf-8", errors="replace")]
    if path.suffix in (".html", ".docx", ".pptx", ".epub"):
        parts = [html.unescape(TAG.sub("", ENDED.sub(" ", part))) for part in parts]
    text = "\n".join(parts)
    return MARKUP.sub("", text) if path.suffix in (".md", ".rst") else text


def test_every_file_has_a_source_with_its_digest_and_licence() -> None:
    """The sources list exactly the files of the collection, unchanged."""
    sources = json.loads((DIRECTORY / "sources.json").read_text("utf-8"))
    digests = {
        path.relative_to(COLLECTION.files).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in COLLECTION.files.rglob("*")
        if path.is_file()
    }
    assert {each["document"]: each["sha256"] for each in sources} == digests
    assert len({each["kind"] for each in sources}) == 8
    for each in sources:
        assert each["licence"]
        assert (DIRECTORY / each["licence_file"]).is_file()


def test_the_collection_has_unique_questions_about_every_document() -> None:
    """Every document has a question, and no question is asked twice."""
    texts = [each.text for each in COLLECTION.questions]
    texts += [each.text for each in COLLECTION.false_premises]
    assert len(set(texts)) == len(texts)
    assert len({each.id for each in COLLECTION.questions}) == len(COLLECTION.questions)
    files = {p.relative_to(COLLECTION.files).as_posix() for p in COLLECTION.files.rglob("*.*")}
    assert {each.document for each in ANSWERABLE} == files


def test_a_quarter_of_the_questions_has_no_answer() -> None:
    """The benchmark also measures refusing."""
    assert len(COLLECTION.questions) - len(ANSWERABLE) >= len(COLLECTION.questions) / 4


@pytest.mark.parametrize("suffix", [".html", ".md", ".rst", ".txt", ".docx", ".pptx", ".epub"])
def test_answers_stand_in_their_documents(suffix: str) -> None:
    """The words of every accepted answer occur in the file, in their order."""
    questions = [each for each in ANSWERABLE if each.document.endswith(suffix)]
    texts = {each.document: plain_text(COLLECTION.files / each.document) for each in questions}
    assert questions
    assert not [
        (each.id, answer)
        for each in questions
        for answer in each.answers
        if not contains_any(texts[each.document], [answer])
    ]


def test_the_sentence_of_a_question_contains_an_answer() -> None:
    """A sentence without an answer could not be judged."""
    assert not [each.id for each in ANSWERABLE if not contains_any(each.sentence, each.answers)]


def test_a_span_is_right_but_for_case_articles_and_punctuation() -> None:
    """A part of an answer is wrong, unless it is accepted itself."""
    assert is_right_span("The main, contrib and non-free", QUESTION)
    assert is_right_span("Main", QUESTION)
    assert not is_right_span("contrib", QUESTION)


def test_composed_and_decomposed_characters_are_equal() -> None:
    """PDF files have letters with separate diacritics."""
    assert contains_any("by Andreas Gru\u0308nbacher", ["Andreas Gr\u00fcnbacher"])


def test_words_of_an_answer_are_whole_and_in_order() -> None:
    """An answer is not found inside another word, or with other words between its own."""
    assert contains_any("the C library", ["C"])
    assert not contains_any("the CRC check", ["C"])
    assert not contains_any("two long weeks", ["two weeks"])


def test_a_gold_passage_has_sentence_and_answer_and_document() -> None:
    """The same words of another document, or the answer in another sentence, do not count."""
    assert is_gold(PASSAGE, QUESTION)
    assert not is_gold(ELSEWHERE, QUESTION)
    assert not is_gold(FoundPassage("policy.html", "The main point is another one."), QUESTION)


def test_a_right_sentence_need_not_have_a_right_span() -> None:
    """The sentence around a wrong span may contain the answer; that around a right span does."""
    assert is_right_sentence(found("contrib"), QUESTION)
    assert not is_right_sentence(found("contrib", passage=ELSEWHERE), QUESTION)
    assert is_right_sentence(found("main", passage=ELSEWHERE), QUESTION)


def test_the_threshold_keeps_nineteen_of_twenty_right_answers() -> None:
    """The answer with the lowest confidence of twenty is given up."""
    right = [reply(QUESTION, "main", confidence=n / 100) for n in range(20)]
    assert refusal_threshold(right) == 0.01
    assert refusal_threshold(right[:19]) == 0.0


def test_the_calibration_error_compares_confidence_with_precision() -> None:
    """Confidence that is right on average is still wrong in each part."""
    assert calibration_error([(0.5, True), (0.5, False)] * 10) == 0
    judged = [(0.4, True)] * 10 + [(0.6, False)] * 10
    assert calibration_error(judged) == pytest.approx(0.6)


def test_figures_count_refusals_and_ranks() -> None:
    """Refused answers count in `right span`, but not in `shown, right span`."""
    replies = [
        reply(QUESTION, "main", retrieved=(ELSEWHERE, PASSAGE)),
        reply(QUESTION, "contrib", shown=False, retrieved=(PASSAGE,)),
        reply(OTHER, "main", shown=False, confidence=0.1),
    ]
    false_premises = [reply(OTHER, "main", confidence=0.1), reply(OTHER, "main", confidence=0.9)]
    values = {(f.group, f.name): f.value for f in figures_of(replies, false_premises)}
    assert values["all", "right span"] == 50
    assert values["all", "right sentence"] == 100
    assert values["all", "gold passage among the first 1"] == 50
    assert values["all", "gold passage among the first 10"] == 100
    assert values["all", "shown, right span"] == 50
    assert values["all", "refused, with an answer"] == 50
    assert values["all", "refused, without an answer"] == 100
    assert values["95 %", "refused, false premise"] == 50
    assert values["html", "right span"] == 50


def test_a_reply_has_the_best_answer_and_the_nearest_passages() -> None:
    """Answers are ordered by score, and passages by their distance from the question."""
    text = "It is late. The archive has main. It is big."
    message = answer_pb2.AnswerResponse(
        has_answer=True,
        answers=[
            answer_pb2.Answer(
                text="main",
                passage=answer_pb2.Passage(id="a/policy.html#12", text=text),
                sentence_start=12,
                sentence_end=33,
                hybrid_distance=0.8,
                score=2.5,
                confidence=0.75,
                sentence_confidence=0.875,
            ),
            answer_pb2.Answer(
                text="it", passage=answer_pb2.Passage(id="faq#1.txt#0"), hybrid_distance=0.2
            ),
        ],
    )
    taken = judged_reply(QUESTION, reply_of_message("?", message))
    assert taken.best == FoundAnswer(
        span="main",
        sentence="The archive has main.",
        passage=FoundPassage("a/policy.html", text),
        score=2.5,
        confidence=0.75,
        sentence_confidence=0.875,
    )
    assert [each.document for each in taken.retrieved] == ["faq#1.txt", "a/policy.html"]
    assert taken.shown
