"""Where the milliseconds went: what is drawn of the response alone."""

from typing import Any

import pytest
from browser import needs_browser
from page_front import PageFront
from page_replies import partial_reply

pytestmark = [needs_browser, pytest.mark.timeout(300)]
IN_PAGE = "async ([file, name, ...given]) => (await import(`/page/${file}.js`))[name](...given)"


def call(page: Any, file: str, name: str, *given: Any) -> Any:
    """What a function of the page gives."""
    return page.evaluate(IN_PAGE, [file, name, *given])


def ask(page: Any) -> None:
    page.fill("#question", "Who?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".times")


def test_every_stage_every_call_and_every_read_is_drawn_where_it_was(
    page: Any, front: PageFront
) -> None:
    front.reply = partial_reply()
    ask(page)
    rows = ["tokenise", "wait to encode", "encode", "retrieve", "read", "merge"]
    shards = ["shard 0", "shard 1", "shard 2"]
    assert page.locator(".waterfall .label").all_inner_texts() == [*rows, *shards]
    bar = page.get_by_title("read coffee: 24 ms, from 12 ms")
    track = bar.locator("..")
    at, whole = bar.bounding_box(), track.bounding_box()
    total = 37.5
    assert (at["x"] - whole["x"]) / whole["width"] == pytest.approx(12.0 / total, abs=0.01)
    assert at["width"] / whole["width"] == pytest.approx(23.9 / total, abs=0.01)
    assert page.locator(".track .call.abandoned").count() == 1


def test_reads_at_the_same_time_lie_below_one_another(page: Any) -> None:
    ask(page)
    boxes = [page.get_by_title(f"read {name}").bounding_box() for name in ("mills", "coffee")]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"] + 0.5


def test_the_table_says_the_same_for_those_who_do_not_see(page: Any) -> None:
    ask(page)
    assert "A table follows" in page.get_attribute(".waterfall", "aria-label")
    page.click(".times summary")
    rows = page.locator(".times tbody tr").all_inner_texts()
    assert rows[0].split("\t") == ["front", "tokenise", "0.0 ms", "0.4 ms"]
    assert "shard 1\tread coffee\t12 ms\t24 ms" in rows
    assert len(rows) == 6 + 4 + 2 + 3  # stages, calls, retrievals, reads


@pytest.mark.parametrize(
    ("blocks", "lanes"),
    [
        ([], []),
        ([(0, 5, 1), (5, 5, 1)], [0, 0]),
        ([(0, 5, 1), (4, 5, 1), (5, 1, 1)], [0, 1, 0]),
        ([(0, 9, 2), (1, 2, 1), (3, 2, 1), (9, 1, 3)], [0, 2, 2, 0]),
    ],
)
def test_no_block_lies_over_another(
    still: Any, blocks: list[tuple[int, int, int]], lanes: list[int]
) -> None:
    given = [{"start": start, "ms": ms, "height": height} for start, ms, height in blocks]
    script = """async (given) => {
        const { pack } = await import("/page/timeline.js");
        pack(given);
        return given.map((each) => each.lane);
    }"""
    assert still.evaluate(script, given) == lanes


@pytest.mark.parametrize(
    ("total", "expected"),
    [(37.5, [0, 10, 20, 30]), (6, [0, 1, 2, 3, 4, 5, 6]), (900, [0, 200, 400, 600, 800])],
)
def test_the_axis_has_few_round_places(still: Any, total: float, expected: list[int]) -> None:
    assert call(still, "timeline", "ticks", total) == expected


def test_figures_are_told_as_people_read_them(still: Any) -> None:
    assert call(still, "numbers", "count", "21015324") == "21,015,324"
    assert call(still, "numbers", "percent", 0.99999) == "99 %"
    assert call(still, "numbers", "percent", 1) == "100 %"
    assert call(still, "numbers", "counted", 1, "shard") == "1 shard"
    assert call(still, "numbers", "figure", "-Infinity") == "-Infinity"


def test_a_figure_that_is_no_number_stands_last(still: Any) -> None:
    answers = [{"score": 1}, {"score": 3}, {"score": "NaN"}, {"score": "-Infinity"}]
    standings = [call(still, "scores", "standing", each, answers, "score", 1) for each in answers]
    assert standings == [0, 1, 0, 0]


def test_many_shards_are_cut_to_the_slowest(page: Any, front: PageFront) -> None:
    timings = front.reply.timings  # type: ignore[union-attr]
    for shard in range(2, 40):
        timings.calls.add(shard=shard, start_ms=5, ms=1)
    ask(page)
    labels = page.locator(".waterfall .label").all_inner_texts()
    assert labels.count("shard 1") == 1
    assert len([each for each in labels if each.startswith("shard")]) == 12
    assert "And 28 faster shards." in page.inner_text(".times")
