"""One browser, one context and one front for the tests of a file; the page keeps nothing beyond a
tab.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from browser import browser, errors_fail, profile, tab_in
from page_front import PageFront, page_front
from page_replies import busy_cluster, whole_reply


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def _context(chromium: Any) -> Iterator[Any]:
    with profile(chromium) as context:
        yield context


@pytest.fixture(scope="module")
def _front() -> Iterator[PageFront]:
    with page_front() as front:
        yield front


@pytest.fixture
def front(_front: PageFront) -> PageFront:
    _front.clear()
    _front.reply, _front.shown = whole_reply(), busy_cluster()
    return _front


@pytest.fixture(scope="module")
def still(_context: Any, _front: PageFront) -> Iterator[Any]:
    """The page, open, for tests that change nothing in it."""
    with tab_in(_context) as opened:
        opened.goto(_front.address)
        yield opened


@pytest.fixture(scope="module")
def _tab(_context: Any) -> Iterator[Any]:
    opened = _context.new_page()
    yield opened
    opened.close()


@pytest.fixture
def page(_context: Any, _tab: Any, front: PageFront) -> Iterator[Any]:
    """The page, opened again without what an earlier test left in the tab.

    A process of Chromium per test would take twice the CPU.
    """
    _context.set_offline(False)  # a test before may have cut the connection
    try:
        with errors_fail(_tab):
            _tab.set_viewport_size({"width": 1280, "height": 720})  # the default
            _tab.goto(front.address)
            yield _tab
    finally:
        _tab.unroute_all()
        _tab.evaluate("sessionStorage.clear()")
        _tab.goto("about:blank")
