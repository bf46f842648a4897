"""The cluster on the page."""

from typing import Any

import pytest
from browser import needs_browser, tab
from page_front import PageFront
from page_replies import busy_cluster

pytestmark = [needs_browser, pytest.mark.timeout(300)]


def rows(page: Any) -> list[list[str]]:
    page.wait_for_selector(".shards tbody tr")
    cells = """() => [...document.querySelectorAll(".shards tbody tr")]
        .map((row) => [...row.cells].map((cell) => cell.innerText))"""
    found: list[list[str]] = page.evaluate(cells)
    return found


def test_shards_and_replicas_are_listed_with_why_one_gets_no_calls(page: Any) -> None:
    said = rows(page)
    serving = ["10.0.0.1:9000", "serving", "2", "14", "12 ms", "0", "0.3 s ago"]
    assert said[0] == ["0\n600 passages", *serving]
    out = "out\nit failed or was slow, and is tried again soon"
    assert said[1] == ["10.0.0.2:9000", out, "0", "0", "?", "4", "0.4 s ago"]
    assert said[3] == ["2\n600 passages", "no replica was found"]
    assert said[4][:2] == ["no shard", "10.0.0.9:9000"]
    assert said[4][-1] == "never"


def test_the_front_says_what_it_is_and_has_in_hand(page: Any) -> None:
    page.wait_for_selector(".shards tbody tr")
    said = page.inner_text("#cluster-state")
    assert "Winnow 1.2.3, bundle default, up for 67 min" in said
    assert "12,345 questions answered, 6 refused" in said
    assert page.inner_text("#summary") == "1,800 passages in 3 shards"
    assert page.text_content("#heads-known").strip() == "In memory now: intent"


def test_a_front_that_does_not_answer_yet_says_so(page: Any, front: PageFront) -> None:
    shown = busy_cluster()
    shown.front.answers = False
    front.shown = shown
    page.reload()
    page.wait_for_selector(".shards tbody tr")
    assert page.inner_text("#summary") == "not enough shards were found yet"


def test_whoever_may_not_look_is_told_so_and_can_ask_all_the_same(
    page: Any, front: PageFront
) -> None:
    front.shown = {"status": 403, "detail": "this key may not do that: admin is needed"}
    page.reload()
    page.locator("#cluster-state", has_text="admin").wait_for()
    assert not page.is_visible(".shards")
    page.fill("#question", "Who?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")


def test_of_many_shards_those_in_trouble_are_listed_first(page: Any, front: PageFront) -> None:
    shown = busy_cluster()
    for shard in range(3, 100):
        made = shown.shards.add(shard=shard, passages=600)
        state = shown.shards[0].replicas[1 if shard == 90 else 0]
        made.replicas.add().CopyFrom(state)
    front.shown = shown
    page.reload()
    names = [each[0].split("\n")[0] for each in rows(page)]
    assert "90" in names
    assert "89" not in names
    assert "And 76 more shards, all serving." in page.inner_text("#cluster-more")


def test_whoever_scrolls_the_table_keeps_their_place_while_it_changes(
    page: Any, front: PageFront
) -> None:
    page.set_viewport_size({"width": 320, "height": 600})
    page.wait_for_selector(".shards tbody tr")
    page.focus("#cluster-table")
    page.evaluate("document.getElementById('cluster-table').scrollLeft = 50")
    shown = busy_cluster()
    shown.shards[0].replicas[0].calls_in_hand = 77
    front.shown = shown
    page.locator(".shards", has_text="77").wait_for()
    assert page.evaluate("document.getElementById('cluster-table').scrollLeft") == 50
    assert page.evaluate("document.activeElement.id") == "cluster-table"


def test_a_front_that_does_not_reply_is_not_shown_as_it_was(page: Any, front: PageFront) -> None:
    page.wait_for_selector(".shards tbody tr")
    page.context.set_offline(True)
    page.locator("#cluster-table").wait_for(state="hidden")
    assert "cannot be reached" in page.inner_text("#cluster-state")


def test_it_is_looked_at_again_and_again_but_not_while_nobody_sees_it(
    chromium: Any, front: PageFront
) -> None:
    def say(answered: int) -> None:
        """What the next look is told."""
        shown = busy_cluster()
        shown.front.questions_answered = answered
        front.shown = shown

    def shows(answered: int) -> None:
        page.locator("#cluster-state", has_text=f"{answered} questions answered").wait_for()

    with tab(chromium) as page:
        page.add_init_script(
            "window.seen = 'visible';"
            "Object.defineProperty(document, 'visibilityState', { get: () => window.seen });"
        )
        page.clock.install()
        say(100)
        page.goto(front.address)
        shows(100)
        say(200)
        page.clock.run_for(2_100)
        shows(200)
        page.evaluate("window.seen = 'hidden'")
        say(300)
        page.clock.run_for(2_100)  # the look that was due is the last one
        shows(300)
        looks = front.looks
        page.clock.run_for(60_000)
        assert front.looks == looks
        say(400)
        page.evaluate(
            "window.seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))"
        )
        shows(400)
