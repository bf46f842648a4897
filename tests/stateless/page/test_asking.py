"""Asking, in a real browser: what goes out, and what is shown of what comes back."""

from typing import Any

import pytest
from browser import needs_browser, tab
from page_front import PageFront
from page_replies import CAFE, GUIDE, NAME, OPENED, partial_reply, whole_reply
from tenacious import until

from winnow.v1.answer_pb2 import ANSWER_SIZE_PASSAGE, ANSWER_SIZE_SENTENCE

pytestmark = [needs_browser, pytest.mark.timeout(300)]


def ask(page: Any, question: str = "Who opened it?") -> None:
    """Asks, and waits until everything is shown."""
    page.fill("#question", question)
    page.keyboard.press("Enter")
    page.wait_for_selector("#result section")
    if not page.query_selector(".problem"):
        page.wait_for_selector(".times")


def texts(page: Any, selector: str) -> list[str]:
    return [each.strip() for each in page.locator(selector).all_inner_texts()]


def test_a_question_is_asked_and_answered_with_the_keyboard_alone(
    page: Any, front: PageFront
) -> None:
    page.keyboard.type("Who opened the café?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".times")
    assert front.requests == [{"question": "Who opened the café?"}]
    assert page.text_content(".answer .words") == NAME
    assert page.text_content(".answer blockquote") == CAFE
    assert page.title() == "Who opened the café? · Winnow"
    assert page.text_content("#status") == f"Answer: {NAME}. 3 passages read in 38 ms."


def test_the_index_in_the_address_is_asked(page: Any, front: PageFront) -> None:
    page.goto(f"{front.address}/?index=docs")
    ask(page)
    assert front.requests == [{"question": "Who opened it?", "index": "docs"}]


def test_the_tenant_in_the_address_is_named(page: Any, front: PageFront) -> None:
    page.goto(f"{front.address}/?tenant=acme")
    ask(page)
    assert front.headers["x-winnow-tenant"] == "acme"


def test_the_words_that_are_marked_are_counted_in_code_points(page: Any) -> None:
    """An emoji is two units of JavaScript, a combining mark is a separate code point."""
    ask(page)
    assert page.text_content(".answer mark") == NAME


def test_other_candidates_follow_with_scores_and_reasons(page: Any) -> None:
    ask(page)
    assert texts(page, ".candidates summary .text") == ["Adam Nowak", "1724"]
    assert texts(page, ".candidates summary .figure") == ["12 %", "< 1 %"]
    page.locator(".candidates summary").first.click()
    why = page.locator(".candidates details[open] .why")
    assert why.locator("dt").all_inner_texts()[:2] == ["Score", "Relevance"]
    assert why.locator("dd.figure").first.inner_text() == "4.25"
    assert "read on shard 1 in 13 ms" in page.inner_text(".candidates details[open]")


def test_the_confidence_of_every_answer_is_shown(page: Any, front: PageFront) -> None:
    ask(page)
    assert page.inner_text(".answer .confidence") == "confidence 91 %"
    assert texts(page, ".candidates summary .figure") == ["12 %", "< 1 %"]
    front.reply.answers[0].confidence = 0.999  # type: ignore[union-attr]
    page.keyboard.press("Enter")
    page.get_by_text("confidence > 99 %").wait_for()


def test_a_bundle_without_confidence_has_scores_shown(page: Any, front: PageFront) -> None:
    for answer in front.reply.answers:  # type: ignore[union-attr]
        answer.ClearField("confidence")
    ask(page)
    assert page.inner_text(".answer h2") == NAME
    assert not page.query_selector(".answer .confidence")
    assert texts(page, ".candidates summary .figure") == ["4.25", "-2.50"]


@pytest.mark.parametrize(("confidence", "sure"), [(0.01, False), (0.19, False), (0.2, True)])
def test_a_headline_is_for_answers_that_are_sure(
    page: Any, front: PageFront, confidence: float, sure: bool
) -> None:
    front.reply.answers[0].confidence = confidence  # type: ignore[union-attr]
    ask(page)
    assert page.inner_text(".answer h2") == (NAME if sure else "No sure answer was found.")
    assert page.text_content(".answer .words") == NAME, "a candidate is shown, too"
    points = float(
        page.eval_on_selector(
            ".answer .words", "each => parseFloat(getComputedStyle(each).fontSize)"
        )
    )
    assert (points > 24) == sure
    assert page.text_content("#status").startswith(
        f"Answer: {NAME}." if sure else f"No sure answer. Best candidate: {NAME}."
    )


def test_what_is_no_answer_is_not_shown_as_one(page: Any, front: PageFront) -> None:
    front.reply.has_answer = False  # type: ignore[union-attr]
    ask(page)
    assert page.inner_text(".answer h2") == "No sure answer was found."
    assert page.text_content("#status").startswith(f"No sure answer. Best candidate: {NAME}.")


def test_no_candidate_at_all_is_said(page: Any, front: PageFront) -> None:
    del front.reply.answers[:]  # type: ignore[union-attr]
    ask(page)
    assert page.inner_text(".answer h2") == "No answer was found."
    assert "other words" in page.inner_text(".advice")


def test_a_minimum_confidence_decides_alone_what_a_headline_is(page: Any, front: PageFront) -> None:
    """A user who sets a low minimum wants to see such answers."""
    best = front.reply.answers[0]  # type: ignore[union-attr]
    best.confidence = best.sentence_confidence = 0.12
    page.click("#options > summary")
    page.fill("#minConfidence", "10")
    ask(page)
    assert page.inner_text(".answer h2") == NAME
    front.reply.has_answer = False  # type: ignore[union-attr]
    page.fill("#minConfidence", "40")
    page.press("#minConfidence", "Enter")
    page.get_by_text("The minimum under Options is 40 %.").wait_for()
    assert page.inner_text(".answer h2") == "No sure answer was found."
    page.get_by_text("Ask without a minimum").click()
    until(lambda: len(front.requests) == 3)
    assert front.requests[2] == {"question": "Who opened it?"}


def test_the_sentence_is_marked_around_the_words(page: Any) -> None:
    ask(page)
    assert page.text_content(".answer .sentence") == OPENED
    assert page.text_content(".answer .sentence mark") == NAME
    colours = page.evaluate("""() => [".sentence", "mark", "blockquote"].map((each) =>
        getComputedStyle(document.querySelector(`.answer ${each}`)).backgroundColor)""")
    assert len(set(colours)) == 3, "the sentence is marked otherwise than the words"


def test_a_sentence_that_is_the_answer_is_the_headline_with_its_confidence(
    page: Any, front: PageFront
) -> None:
    best = front.reply.answers[0]  # type: ignore[union-attr]
    best.size, best.shown_text, best.confidence = ANSWER_SIZE_SENTENCE, OPENED, 0.15
    ask(page)
    assert page.text_content(".answer h2") == OPENED
    assert page.inner_text(".answer .confidence") == ("confidence 94 %, 15 % for the marked words")


def test_a_passage_that_is_the_answer_is_shown_once(page: Any, front: PageFront) -> None:
    best = front.reply.answers[0]  # type: ignore[union-attr]
    best.size, best.shown_text = ANSWER_SIZE_PASSAGE, CAFE
    ask(page)
    assert texts(page, ".answer blockquote") == [CAFE]
    assert page.text_content(".answer mark") == NAME


def test_an_answer_cites_its_document(page: Any) -> None:
    ask(page)
    here, there = page.locator(".answer .source a").all()
    assert here.inner_text() == "guides/Łódź.pdf, page 4, The first café"
    assert here.get_attribute("href").startswith("#document=guides%2F")
    assert there.get_attribute("href") == f"{GUIDE}#page=4", "a PDF file opens at its page"
    assert sorted(texts(page, ".answer .metadata dd")) == ["1923", "pl"]
    assert not page.locator(".candidates .source").count(), "their passages have no document"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "https://["])
def test_only_web_addresses_of_documents_become_links(
    page: Any, front: PageFront, url: str
) -> None:
    front.reply.answers[0].source.url = url  # type: ignore[union-attr]
    ask(page)
    assert page.text_content(".answer .source").startswith("guides/Łódź.pdf, page 4")
    assert not page.locator(f"a[href='{url}']").count()


def test_without_a_sure_answer_the_page_says_what_to_try(page: Any, front: PageFront) -> None:
    reply = partial_reply()
    reply.has_answer = False
    front.reply = reply
    page.click("#options > summary")
    page.fill("#filter", "year > 1900")
    ask(page)
    advice = page.inner_text(".advice")
    assert "A part of the index was not searched." in advice
    assert "Only passages where year > 1900 were searched." in advice
    assert "Use other words" in advice
    assert "Read up to 9" in advice
    front.clear()
    front.reply = whole_reply()
    page.get_by_text("Ask without the filter").click()
    page.wait_for_selector(".answer h2:has-text('Nowak')")
    assert front.requests == [{"question": "Who opened it?"}]
    assert not page.locator(".advice").count()


def test_an_answer_from_a_part_of_the_index_says_which_part(page: Any, front: PageFront) -> None:
    ask(page)
    assert not page.query_selector(".coverage")
    front.reply = partial_reply()
    page.keyboard.press("Enter")
    page.wait_for_selector(".coverage")
    said = page.inner_text(".coverage")
    assert "67 % of the index: 1,200 of 1,800 passages" in said
    assert "Shard 2 (600 passages): late, no reply in time" in said


def test_heads_say_what_the_question_is(page: Any, front: PageFront) -> None:
    front.reply = partial_reply()
    ask(page, "Who opened the café in Łódź?")
    page.wait_for_selector(".heads")
    assert texts(page, ".heads dt") == ["intent", "entities", "mood"]
    labels = ["no label fits", "restaurant_reviews 61 %", "travel_suggestion 22 %"]
    assert texts(page, ".heads .labels li") == labels
    assert texts(page, ".heads mark") == ["Łódź location 97 %"]
    assert texts(page, ".heads .failed") == ["there is no head mood in this encoder group"]


def test_every_option_that_is_set_goes_out_and_no_other(page: Any, front: PageFront) -> None:
    page.click("#options summary")
    page.select_option("#retriever", "RETRIEVER_HYBRID")
    page.select_option("#readScope", "READ_SCOPE_GLOBAL")
    page.select_option("#partialResults", "PARTIAL_RESULTS_FORBID")
    for name, value in {"passagesToRead": "20", "answers": "5", "maxLoss": "0.5"}.items():
        page.fill(f"#{name}", value)
    page.select_option("#answerSize", "ANSWER_SIZE_SENTENCE")
    page.fill("#minConfidence", "35")
    page.fill("#filter", " year >= 2010 ")
    page.fill("#heads", "intent, entities")
    page.check("#fresh")
    ask(page)
    assert front.requests == [
        {
            "question": "Who opened it?",
            "retriever": "RETRIEVER_HYBRID",
            "readScope": "READ_SCOPE_GLOBAL",
            "partialResults": "PARTIAL_RESULTS_FORBID",
            "answerSize": "ANSWER_SIZE_SENTENCE",
            "minConfidence": 0.35,
            "passagesToRead": 20,
            "answers": 5,
            "maxLoss": 0.5,
            "filter": "year >= 2010",
            "heads": ["intent", "entities"],
            "fresh": True,
        }
    ]


def test_a_field_that_breaks_a_rule_says_so_and_is_gone_to(page: Any, front: PageFront) -> None:
    said = "unknown field yeer; known fields are lang, year"
    front.reply = {"status": 400, "violations": [{"field": "filter", "description": said}]}
    ask(page)
    assert page.text_content("#filter-wrong") == said
    assert page.get_attribute("#filter", "aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "filter"
    front.clear()
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    assert not page.is_visible("#filter-wrong")
    assert page.get_attribute("#filter", "aria-invalid") is None


@pytest.mark.parametrize("value", ["0", "101", "2.5"])
def test_numbers_that_the_server_would_not_take_are_not_sent(
    page: Any, front: PageFront, value: str
) -> None:
    page.click("#options summary")
    page.fill("#passagesToRead", value)
    page.fill("#question", "Who?")
    page.click("#go")
    assert page.is_visible("#passagesToRead-wrong")
    assert not front.requests


def test_an_empty_question_is_not_sent(page: Any, front: PageFront) -> None:
    page.click("#go")
    assert page.text_content("#question-wrong") == "Write a question first."
    assert not front.requests


def test_a_violation_of_a_field_that_is_not_here_is_shown_with_the_problem(
    page: Any, front: PageFront
) -> None:
    violations = [{"field": "request", "description": "too large"}]
    front.reply = {"status": 400, "detail": "request: too large", "violations": violations}
    ask(page)
    assert page.inner_text(".problem") == "request: too large"


def test_whoever_is_refused_is_told_when_to_try_again_and_the_request_id(
    page: Any, front: PageFront
) -> None:
    front.reply = {
        "status": 429, "detail": "no room", "retryAfterSeconds": 1.5, "requestId": "mine",
    }  # fmt: skip
    ask(page)
    assert page.inner_text(".problem").split("\n")[0] == "no room (try again in 1.5 s)"
    assert page.text_content(".problem code") == "mine"


def test_a_server_that_cannot_be_reached_is_a_problem_that_is_said(page: Any) -> None:
    page.context.set_offline(True)
    ask(page)
    assert "cannot be reached" in page.inner_text(".problem")


def test_a_reply_that_is_no_json_is_a_problem_that_is_said(page: Any) -> None:
    page.route("**/v1/answer", lambda route: route.fulfill(status=502, body="<html>bad gateway"))
    ask(page)
    assert page.inner_text(".problem") == "The server replied with status 502."


def test_a_key_is_asked_for_sent_and_kept_in_the_tab_only(page: Any, front: PageFront) -> None:
    front.reply = {"status": 401, "detail": "a key is needed"}
    ask(page)
    assert page.inner_text(".problem") == "a key is needed"
    assert page.evaluate("document.activeElement.id") == "key"
    assert page.inner_text("#key-wrong") == "This server asks for a key."
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    page.locator("#key-wrong", has_text="a key is needed").wait_for()
    assert page.get_attribute("#key", "aria-invalid") == "true"
    front.reply = {"status": 403, "detail": "key bob lacks the scope 'ask'"}
    page.keyboard.press("Enter")
    page.locator("#key-wrong", has_text="key bob lacks the scope").wait_for()
    front.clear()
    page.fill("#key", "secret")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    assert front.headers["authorization"] == "Bearer secret"
    assert not page.evaluate("document.getElementById('options').open"), "it hid the answer"
    assert page.evaluate("document.activeElement.id") == "question"
    assert page.evaluate("localStorage.length") == 0
    assert "secret" not in page.url
    page.reload()
    page.wait_for_selector(".answer")
    assert front.headers["authorization"] == "Bearer secret"
    with tab(page.context.browser) as other:
        other.goto(front.address)
        assert other.input_value("#key") == ""


def test_options_that_the_user_opened_stay_open_after_a_key(page: Any, front: PageFront) -> None:
    page.click("#options > summary")
    front.reply = {"status": 401, "detail": "a key is needed"}
    ask(page)
    front.clear()
    page.fill("#key", "secret")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    assert page.evaluate("document.getElementById('options').open")


def test_escape_stops_a_question_and_its_reply_is_not_shown(page: Any, front: PageFront) -> None:
    front.go_on.clear()
    page.fill("#question", "Who?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#stop:visible")
    until(lambda: len(front.requests) == 1)
    page.keyboard.press("Escape")
    assert page.text_content("#status") == "Stopped."
    assert not page.is_visible("#stop")
    front.go_on.set()
    page.wait_for_load_state("networkidle")
    assert not page.query_selector(".answer")


def test_the_reply_of_an_earlier_question_never_takes_the_place_of_a_later_one(
    page: Any, front: PageFront
) -> None:
    front.go_on.clear()
    for question in ("First?", "Second?"):
        page.fill("#question", question)
        page.keyboard.press("Enter")
    until(lambda: len(front.requests) == 2)
    front.go_on.set()
    page.wait_for_selector(".times")
    assert page.title() == "Second? · Winnow"


def test_an_address_that_names_a_question_asks_it_and_the_server_is_not_told_it_otherwise(
    page: Any, front: PageFront
) -> None:
    ask(page, "Who & what?")
    asked = page.url
    assert asked.endswith("#q=Who%20%26%20what%3F")
    with tab(page.context.browser) as other:
        other.goto(asked)
        other.wait_for_selector(".answer")
        assert other.input_value("#question") == "Who & what?"
    assert [each["question"] for each in front.requests] == ["Who & what?"] * 2


def test_why_the_question_of_an_address_is_refused_is_said_once(
    page: Any, front: PageFront
) -> None:
    front.reply = {"status": 400, "detail": "request: too large"}
    with tab(page.context.browser) as other:
        other.goto(f"{front.address}/#q=Who")
        other.wait_for_selector(".problem")
        assert other.inner_text(".problem") == "request: too large"
    assert [each["question"] for each in front.requests] == ["Who"]


def test_keys_go_to_the_question_and_through_the_answers(page: Any) -> None:
    ask(page)
    page.evaluate("document.activeElement.blur()")
    focused = "document.activeElement.textContent"
    page.keyboard.press("j")
    assert page.evaluate(focused) == NAME
    page.keyboard.press("j")
    assert "Adam Nowak" in page.evaluate(focused)
    page.keyboard.press("Enter")
    assert page.is_visible(".candidates details[open] blockquote")
    page.keyboard.press("k")
    assert page.evaluate(focused) == NAME
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.type("j/k")
    assert page.input_value("#question") == "j/k"


def test_what_was_remembered_and_what_was_cut_is_said(page: Any, front: PageFront) -> None:
    reply = front.reply
    reply.cached, reply.question_truncated, reply.passages_granted = True, True, 1  # type: ignore[union-attr]
    ask(page)
    said = page.text_content("#status")
    assert "It came from the cache in 38 ms." in said
    assert "The end of the question was cut off." in said
    assert "1 passage of 3 were granted" in said
    assert "nothing was read" in page.inner_text(".times")


def test_where_enough_was_read_it_does_not_matter_that_less_was_granted(
    page: Any, front: PageFront
) -> None:
    reply = front.reply
    reply.passages_granted, reply.passages_needed, reply.max_loss = 2, 1, 0.3  # type: ignore[union-attr]
    ask(page)
    assert "were granted" not in page.text_content("#status")


def test_the_time_until_the_answer_was_painted_can_be_measured(page: Any) -> None:
    ask(page)
    assert page.evaluate("performance.getEntriesByName('winnow-answer').length") == 1
