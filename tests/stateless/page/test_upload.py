"""Uploading documents, in a real browser."""

from typing import Any

import pytest
from browser import needs_browser
from page_front import PageFront

pytestmark = [needs_browser, pytest.mark.timeout(300)]
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  document.getElementById("upload").dispatchEvent(
    new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def feeding(front: PageFront) -> PageFront:
    front.stored.feeds = True
    front.stored.put("other.txt", ("", "Another document.", 1))
    return front


def open_documents(page: Any, front: PageFront) -> None:
    page.goto(f"{front.address}/#documents")
    page.wait_for_selector("#documents-list li:visible")


def choose(page: Any, name: str, text: str) -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    page.set_input_files("#upload-files", [file])


def test_a_front_that_takes_no_writes_offers_no_upload(page: Any, front: PageFront) -> None:
    front.stored.put("other.txt", ("", "Another document.", 1))
    with page.expect_response("**/openapi.json"):
        open_documents(page, front)
    assert not page.is_visible("#upload")


def test_a_dropped_file_is_converted_stored_and_listed(page: Any, feeding: PageFront) -> None:
    open_documents(page, feeding)
    page.wait_for_selector("#upload:visible")
    page.evaluate(DROP, ["cafés.md", "\n".join(f"Line {each}." for each in range(230))])
    page.get_by_text("230 passages stored", exact=True).wait_for()
    page.locator("#documents-list", has_text="cafés.md").wait_for()
    calls = [name for name, _ in feeding.stored.calls]
    assert calls == ["convert", "put", "put", "put", "delete"]
    after = feeding.stored.calls[-1][1]["after"]
    assert after == [{"shard": 0, "sequence": "4"}], "the deletion sees all that was stored"


def test_a_file_replaces_the_document_of_its_name_and_no_other(
    page: Any, feeding: PageFront
) -> None:
    open_documents(page, feeding)
    page.wait_for_selector("#upload:visible")
    choose(page, "a.txt", "one\ntwo\nthree")
    page.get_by_text("3 passages stored", exact=True).wait_for()
    choose(page, "a.txt", "one")
    page.get_by_text("1 passage stored", exact=True).wait_for()
    assert sorted(feeding.stored.passages) == ["a.txt#0", "other.txt#0"]


def test_a_file_that_fails_says_why_and_the_next_one_goes_on(page: Any, feeding: PageFront) -> None:
    broken = {"status": 400, "detail": "content: damaged", "violations": [
        {"field": "content", "description": "damaged: page 3 is not a page"}]}  # fmt: skip
    busy = {"status": 429, "detail": "too many documents", "retryAfterSeconds": 0.01}
    feeding.stored.refusals = [broken, busy, busy]
    open_documents(page, feeding)
    page.wait_for_selector("#upload:visible")
    choose(page, "broken.pdf", "x")
    choose(page, "good.txt", "one")
    page.get_by_text("1 passage stored", exact=True).wait_for()
    assert page.locator("#upload-list .wrong").all_inner_texts() == [
        "damaged: page 3 is not a page"
    ]


def test_a_key_that_may_not_feed_is_refused_and_another_is_asked_for(
    page: Any, feeding: PageFront
) -> None:
    feeding.stored.refusals = [{"status": 403, "detail": "key bob lacks the scope 'feed'"}]
    open_documents(page, feeding)
    page.wait_for_selector("#upload:visible")
    choose(page, "a.txt", "one")
    page.locator("#upload-list .wrong", has_text="lacks the scope").wait_for()
    assert page.evaluate("document.activeElement.id") == "key"
