"""Whether everybody can read and use the page: checks that a browser can make."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import needs_browser, tab
from page_front import PageFront
from page_replies import busy_cluster, partial_reply

pytestmark = [needs_browser, pytest.mark.timeout(300)]
PHONE, NARROW = {"width": 390, "height": 844}, {"width": 320, "height": 568}
CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = [...document.querySelectorAll("body *")].filter((each) =>
    [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) &&
    each.checkVisibility());
  return texts.map((each) => {
    const pair = [parse(getComputedStyle(each).color), behind(each)].map(light).sort((a, b) => b - a);
    return [(pair[0] + 0.05) / (pair[1] + 0.05), each.tagName + "." + each.className];
  });
}"""


@pytest.fixture(scope="module", params=["light", "dark"])
def shown(request: pytest.FixtureRequest, chromium: Any, _front: PageFront) -> Iterator[Any]:
    """The page with everything that it can show, opened; tests leave it as it is."""
    _front.reply, _front.shown = partial_reply(), busy_cluster()
    with tab(chromium, color_scheme=request.param, viewport=PHONE) as page:
        page.goto(_front.address)
        show_all(page)
        yield page


def show_all(page: Any) -> None:
    page.fill("#question", "Who opened the café in Łódź?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".times")
    page.wait_for_selector(".shards tbody tr")
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def test_every_text_stands_out_from_what_is_behind_it(shown: Any) -> None:
    found = shown.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_document_and_the_list_of_documents_can_be_read_by_everybody(
    chromium: Any, front: PageFront, scheme: str
) -> None:
    long_name = "handbook/a-name-that-is-longer-than-a-phone-is-wide-and-has-no-spaces.html"
    front.stored.put(long_name, ("Term", "w" * 300, 1), ("Term", "A term.", 2))
    with tab(chromium, color_scheme=scheme, viewport=NARROW) as page:
        for place in ("#documents", f"#document={long_name}&passage={long_name}%231"):
            page.goto(f"{front.address}/{place}")
            page.wait_for_selector("#documents-list li:visible, .cited:visible")
            assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(wide) == 0


def test_light_and_dark_are_two_looks(chromium: Any, front: PageFront) -> None:
    looks = set()
    for scheme in ("light", "dark"):
        with tab(chromium, color_scheme=scheme) as page:
            page.goto(front.address)
            looks.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(looks) == 2


def test_every_field_has_a_name_and_what_describes_it_is_there(shown: Any) -> None:
    unnamed = """() => [...document.querySelectorAll("input, select, textarea, button")]
        .filter((each) => !(each.labels?.length || each.textContent.trim())).map((each) => each.id)"""
    assert shown.evaluate(unnamed) == []
    dangling = """() => ["aria-describedby", "aria-labelledby"].flatMap((name) =>
        [...document.querySelectorAll(`[${name}]`)].flatMap((each) =>
            each.getAttribute(name).split(" ").filter((id) => !document.getElementById(id))))"""
    assert shown.evaluate(dangling) == []
    twice = """() => { const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
        return ids.filter((id, place) => ids.indexOf(id) !== place); }"""
    assert shown.evaluate(twice) == []
    assert shown.get_attribute("html", "lang") == "en"
    assert shown.locator("h1").count() == 1


def test_what_changes_is_told_to_those_who_listen(shown: Any) -> None:
    assert shown.get_attribute("#status", "role") == "status"
    assert shown.get_attribute("#result", "aria-busy") == "false"


def test_a_phone_needs_no_scrolling_to_the_side_and_what_is_touched_is_large(
    shown: Any,
) -> None:
    for size in (NARROW, PHONE):
        shown.set_viewport_size(size)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert shown.evaluate(wide) == 0
    small = """() => [...document.querySelectorAll("button, select, textarea, input:not([type=checkbox])")]
        .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 44)
        .map((each) => each.id)"""
    assert shown.evaluate(small) == []
    tiny = """() => [...document.querySelectorAll("input, select, textarea")]
        .filter((each) => parseFloat(getComputedStyle(each).fontSize) < 16).map((each) => each.id)"""
    assert shown.evaluate(tiny) == [], "a phone zooms in on these"


def test_whoever_uses_keys_sees_where_they_are_at_every_stop(shown: Any) -> None:
    shown.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(60):
        shown.keyboard.press("Tab")
        where = shown.evaluate("document.activeElement.outerHTML.slice(0, 80)")
        if where.startswith("<body") or where in seen:
            break
        seen.add(where)
        outline = shown.evaluate(
            "parseFloat(getComputedStyle(document.activeElement).outlineWidth)"
        )
        assert outline >= 2, where
    assert len(seen) > 15


def test_nothing_moves_for_those_who_asked_for_that(chromium: Any, front: PageFront) -> None:
    with tab(chromium, reduced_motion="reduce") as page:
        page.goto(front.address)
        moving = """() => [...document.querySelectorAll("*")].filter((each) =>
            parseFloat(getComputedStyle(each).transitionDuration) > 0).length"""
        assert page.evaluate(moving) == 0


def test_without_scripts_the_page_says_what_to_do(chromium: Any, front: PageFront) -> None:
    with tab(chromium, java_script_enabled=False) as page:
        page.goto(front.address)
        assert "needs JavaScript" in page.inner_text("main")
