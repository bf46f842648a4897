"""Documents of the index, in a real browser: the list, a document, and the cited passage."""

from typing import Any

import pytest
from browser import needs_browser, tab
from page_front import PageFront
from page_replies import CAFE, GUIDE, NAME, OPENED

from winnow.domain.source import HEADING_SEPARATOR

pytestmark = [needs_browser, pytest.mark.timeout(300)]
LODZ = "guides/Łódź.pdf"
FIRST_CAFE = HEADING_SEPARATOR.join(("Cafés", "The first café"))


@pytest.fixture
def guide(front: PageFront) -> PageFront:
    """A front with a guide, whose fifth passage is the best answer's, and two other documents."""
    paragraphs = [("Mills", f"Mill {number} was built of brick. " * 9, 1) for number in range(12)]
    front.stored.put(
        LODZ,
        ("Cafés", "The town has many cafés.", 3),
        *((FIRST_CAFE, text, 4) for text in ("Nobody knew coffee.", CAFE)),
        *paragraphs,
        url=GUIDE,
    )
    front.stored.put('a "quoted\\ name.md', ("", "Only one passage.", 1))
    front.stored.put("notes/market.txt", ("", "The market.", 1), ("", "It closed.", 1))
    best: Any = front.reply
    best.answers[0].passage.id = f"{LODZ}#2"
    return front


def open_citation(page: Any) -> None:
    page.fill("#question", "Who opened it?")
    page.keyboard.press("Enter")
    page.locator(".answer .source a").first.click()
    page.wait_for_selector("#document-text .cited")


def test_a_citation_opens_the_document_at_the_passage(page: Any, guide: PageFront) -> None:
    open_citation(page)
    assert page.inner_text("#document-name") == LODZ
    assert page.text_content(".cited") == CAFE
    assert page.text_content(".cited .sentence") == OPENED
    assert page.text_content(".cited mark") == NAME
    assert page.evaluate("document.activeElement.className") == "cited"
    assert page.evaluate(
        "document.querySelector('.cited').getBoundingClientRect().bottom <= innerHeight"
    )
    assert page.title() == f"{LODZ} · Winnow"
    assert not page.is_visible("#result")
    assert page.locator("#document-state a").get_attribute("href") == f"{GUIDE}#page=4"


def test_a_document_is_in_its_order_with_headings_and_pages(page: Any, guide: PageFront) -> None:
    """Ids are listed as texts: 10 comes before 2."""
    open_citation(page)
    levels = "each => each.map((one) => `${one.tagName} ${one.textContent}`)"
    found = page.eval_on_selector_all("#document-text :is(h3, h4, .page)", levels)
    assert found == [
        "P page 3",
        "H3 Cafés",
        "P page 4",
        "H4 The first café",
        "P page 1",
        "H3 Mills",
    ]
    mills = [each for each in page.locator("#document-text p").all_inner_texts() if "Mill " in each]
    assert [each.split()[1] for each in mills] == [str(number) for number in range(12)]


def test_going_back_shows_the_answer_as_it_was_without_asking_again(
    page: Any, guide: PageFront
) -> None:
    open_citation(page)
    page.go_back()
    page.wait_for_selector("#result .answer", state="visible")
    assert page.evaluate("document.activeElement.textContent").startswith(LODZ), "focus is there"
    page.go_forward()
    page.wait_for_selector("#document-text .cited")
    page.get_by_text("Back to the answer").click()
    page.wait_for_selector("#result .answer", state="visible")
    assert len(guide.requests) == 1


def test_a_question_asked_in_a_document_is_answered_and_back_leads_to_the_document(
    page: Any, guide: PageFront
) -> None:
    open_citation(page)
    page.fill("#question", "When did it close?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result .times", state="visible")
    assert not page.is_visible("#document")
    page.go_back()
    page.wait_for_selector("#document-text .cited", state="visible")


def test_an_address_of_a_passage_opens_it_in_another_tab(page: Any, guide: PageFront) -> None:
    open_citation(page)
    with tab(page.context.browser) as other:
        other.goto(page.url)
        other.wait_for_selector(".cited")
        assert other.text_content(".cited") == CAFE
        assert not other.is_visible("#document-back"), "no question was asked here"


def test_a_passage_that_is_gone_is_said_and_the_document_is_shown(
    page: Any, guide: PageFront
) -> None:
    page.goto(f"{guide.address}/#document=notes/market.txt&passage=notes/market.txt%237")
    page.get_by_text("The cited passage is gone").wait_for()
    assert page.locator("#document-text p").all_inner_texts() == [
        "page 1",
        "The market.",
        "It closed.",
    ]


def test_documents_are_listed_and_found_by_name(page: Any, guide: PageFront) -> None:
    guide.stored.page_limit = 2
    page.get_by_role("link", name="Documents").click()
    page.wait_for_selector("#documents-list li")
    assert page.inner_text("#documents-state") == "3 documents."
    page.keyboard.type("LODZ")
    assert page.locator("#documents-list li").all_inner_texts() == []
    page.fill("#documents-find", "ódz")
    assert page.locator("#documents-list li a").all_inner_texts() == [LODZ]
    assert page.inner_text("#documents-state") == "1 of 3 documents."
    page.fill("#documents-find", "quoted")
    page.locator("#documents-list a").click()
    page.get_by_text("Only one passage.").wait_for()
    page.get_by_text("All documents").click()
    page.wait_for_selector("#documents-list li", state="visible")


def test_an_index_without_documents_says_so(page: Any, front: PageFront) -> None:
    page.goto(f"{front.address}/#documents")
    page.get_by_text("This index has no documents").wait_for()


def test_of_a_long_document_the_part_around_the_passage_is_shown(
    page: Any, guide: PageFront
) -> None:
    texts = [("", f"Line {number}. " + "x" * 1000, 1) for number in range(1000)]
    guide.stored.put("book.txt", *texts)
    guide.stored.page_limit = 100
    page.goto(f"{guide.address}/#document=book.txt&passage=book.txt%23500")
    page.wait_for_selector(".cited")
    lines = page.locator("#document-text p").all_inner_texts()
    shown = [int(each.split()[1][:-1]) for each in lines if each.startswith("Line")]
    assert shown == list(range(shown[0], shown[-1] + 1))
    assert 300 < shown[0] < 490
    assert 510 < shown[-1] < 700
    page.get_by_text("Later text").click()
    page.get_by_text(f"Line {shown[-1] + 20}.").wait_for()
    page.get_by_text("Earlier text").click()
    page.get_by_text(f"Line {shown[0] - 20}.").wait_for()


def test_why_documents_cannot_be_read_is_said_and_a_key_is_asked_for(
    page: Any, guide: PageFront
) -> None:
    guide.stored.problem = {"status": 401, "detail": "a key is needed"}
    page.goto(f"{guide.address}/#documents")
    page.locator("#documents-state", has_text="a key is needed").wait_for()
    guide.stored.problem = None
    page.fill("#key", "secret")
    page.keyboard.press("Enter")
    page.wait_for_selector("#documents-list li")
    assert guide.stored.headers["authorization"] == "Bearer secret"
    guide.stored.problem = {"status": 503, "detail": "shard 0 cannot be reached"}
    page.get_by_role("link", name="quoted").click()
    page.locator("#document-state", has_text="shard 0 cannot be reached").wait_for()


def test_the_link_that_skips_the_question_goes_to_what_is_shown(
    page: Any, guide: PageFront
) -> None:
    open_citation(page)
    page.focus("#skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "document-name"
    assert "passage=" in page.url


@pytest.mark.parametrize(
    ("heading", "text", "questions"),
    [
        (f"Guide{HEADING_SEPARATOR}2.1. How do I report a bug?", "Send mail.", []),
        ("Where are bugs reported?", "By mail.", ["Where are bugs reported?"]),
        ("Is Lintian a tool?", "Yes.", []),
        ("What about Ubuntu?", "It differs.", []),
        ("The pool", "The pool is a directory.", ["What is the pool?"]),
        ("Q3: Which archive areas does Debian have?", "x", ["Which archive areas does Debian have?"]),
        ("Is this free?", "Yes.", []),
        ("3.4 Virtual packages", "A virtual package is a name.", []),
        ("3.4 Virtual package", "A virtual package is a name.", ["What is a virtual package?"]),
        ("Lintian", "Lintian (a checker) is a tool that reads packages.", ["What is Lintian?"]),
        ("Archive areas", "Archive areas are the parts of an archive.", ["What are Archive areas?"]),
        ("Ada Lovelace", "Ada Lovelace is a writer of programs.", []),
        ("Example", "An example is a text.", []),
        ("Goal", "The goal is a better text.", []),
        ("", "It is a text.", []),
        ("Priority", "Each package has one.", []),
    ],
)  # fmt: skip
def test_examples_are_headings_that_ask_and_terms_that_are_defined(
    still: Any, heading: str, text: str, questions: list[str]
) -> None:
    make = "async (one) => (await import('/page/example_questions.js')).questionsOf([one])"
    assert still.evaluate(make, {"text": text, "metadata": {"heading": heading}}) == questions


def test_examples_are_shown_until_something_is_asked(page: Any, guide: PageFront) -> None:
    assert not page.is_visible("#examples")
    guide.stored.put("faq.md", (f"FAQ{HEADING_SEPARATOR}Where are bugs reported?", "By mail.", 1))
    page.reload()
    page.get_by_role("link", name="Where are bugs reported?").click()
    page.wait_for_selector(".answer")
    assert guide.requests == [{"question": "Where are bugs reported?"}]
    assert not page.is_visible("#examples")
