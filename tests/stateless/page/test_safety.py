"""What the page may do, and what nobody can make it do."""

import re
from pathlib import Path
from typing import Any

import pytest
from browser import needs_browser, tab
from page_front import PageFront
from starlette.applications import Starlette
from starlette.testclient import TestClient

import winnow.stateless.page
from winnow.stateless.page.assets import assets
from winnow.stateless.page.routes import POLICY, page_routes

STATIC = Path(winnow.stateless.page.__file__).parent / "static"
EVIL = "<img src=x onerror='window.broken = 1'><script>window.broken = 1</script>"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(Starlette(routes=page_routes()))


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/style.css", "/page/favicon.svg"])
def test_every_file_is_sent_with_a_strict_policy_and_its_type(
    client: TestClient, path: str
) -> None:
    reply = client.get(path)
    assert reply.status_code == 200
    assert reply.headers["content-security-policy"] == POLICY
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"
    types = {"/": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert reply.headers["content-type"].startswith(types[path.rsplit(".", 1)[-1]])


def test_the_policy_lets_in_neither_inline_code_nor_anything_from_elsewhere() -> None:
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert not re.search(r"https?:|\*|data:", POLICY)


def test_a_file_that_a_browser_has_is_not_sent_again(client: TestClient) -> None:
    tag = client.get("/page/page.js").headers["etag"]
    again = client.get("/page/page.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/page/page.js", headers={"if-none-match": '"old"'}).status_code == 200


def test_only_files_of_the_page_are_served(client: TestClient) -> None:
    for path in ("/page/routes.py", "/page/../routes.py", "/page/", "/page/index.html"):
        assert client.get(path).status_code == 404


def test_every_file_of_the_folder_is_served(client: TestClient) -> None:
    names = {file.name for file in STATIC.iterdir()}
    assert names == set(assets())


def test_modules_are_fetched_at_once_and_not_one_after_the_other() -> None:
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    hinted = set(re.findall(r'"modulepreload" href="page/(\w+\.js)"', text))
    begun = set(re.findall(r'src="page/(\w+\.js)"', text))
    assert hinted | begun == {file.name for file in STATIC.glob("*.js")}


def test_no_file_names_another_site() -> None:
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]", text), file.name


def test_the_document_has_no_inline_script_style_or_handler() -> None:
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|<script(?![^>]*\ssrc=)", text)


@needs_browser
@pytest.mark.timeout(300)
def test_what_a_reply_says_is_shown_as_text_and_never_becomes_markup(
    page: Any, front: PageFront
) -> None:
    reply: Any = front.reply
    for answer in reply.answers:
        answer.text = answer.passage.text = answer.passage.title = answer.passage.id = EVIL
        answer.shown_text = answer.source.document = answer.source.url = EVIL
        answer.source.headings[:] = [EVIL]
        answer.start, answer.end = 0, len(EVIL)
        answer.sentence_start, answer.sentence_end = 0, len(EVIL)
        answer.passage.metadata.update({EVIL: EVIL})
    reply.heads.add(head_id=EVIL, failure=EVIL)
    for call in reply.timings.calls:
        for read in call.reads:
            read.passage_id = EVIL
    shown: Any = front.shown
    shown.strangers[0].address = shown.strangers[0].reason = EVIL
    page.reload()
    page.fill("#question", EVIL)
    page.keyboard.press("Enter")
    page.wait_for_selector(".times")
    page.wait_for_selector(".shards tbody tr")
    assert page.text_content(".answer .words") == EVIL
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.broken") is None


@needs_browser
@pytest.mark.timeout(300)
def test_what_a_document_says_is_shown_as_text(page: Any, front: PageFront) -> None:
    front.stored.put(EVIL, (f"{EVIL} ends in?", EVIL, 1), url="javascript:window.broken = 1")
    front.stored.passages[f"{EVIL}#0"]["metadata"]["page"] = EVIL
    page.reload()
    page.click("text=Documents")
    page.click("#documents-list a")
    page.wait_for_selector("#document-text h3")
    assert page.text_content("#document-text p:last-child") == EVIL
    assert page.locator("main img, main script, a[href^='javascript']").count() == 0
    assert page.evaluate("window.broken") is None


@needs_browser
@pytest.mark.timeout(300)
def test_the_browser_itself_keeps_texts_from_becoming_markup(
    chromium: Any, front: PageFront
) -> None:
    """Even if a mistake in the page tried to."""
    refused = """() => {
      try { document.body.insertAdjacentHTML("beforeend", "<p>hello</p>"); return false; }
      catch (error) { return error instanceof TypeError; }
    }"""
    with tab(chromium, tolerated="TrustedHTML") as page:
        page.goto(front.address)
        assert page.evaluate(refused)
