"""A real browser without a window: Debian's Chromium, driven by Playwright."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import needs
import pytest

CHROMIUM = shutil.which("chromium") or ""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
needs_browser = pytest.mark.skipif(not CHROMIUM, reason=needs.CHROMIUM)
PATIENCE = 120_000.0
"""Timeout in milliseconds; long, because the machine may be busy."""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Starts Chromium without its background requests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=2 * PATIENCE)
        try:
            yield started
        finally:
            started.close()


@contextlib.contextmanager
def profile(started: Any, **options: Any) -> Iterator[Any]:
    """Opens a browser context. Its tabs share cookies and caches, but no session storage."""
    context = started.new_context(**options)
    context.set_default_timeout(PATIENCE)
    try:
        yield context
    finally:
        context.close()


@contextlib.contextmanager
def tab(started: Any, tolerated: str = "\0", **options: Any) -> Iterator[Any]:
    """Opens a tab in a new context; fails if the page logs an error without `tolerated` in it."""
    with profile(started, **options) as context, tab_in(context, tolerated) as opened:
        yield opened


@contextlib.contextmanager
def tab_in(context: Any, tolerated: str = "\0") -> Iterator[Any]:
    """Opens a tab in a context; fails if the page logs an error without `tolerated` in it."""
    opened = context.new_page()
    with errors_fail(opened, tolerated):
        try:
            yield opened
        finally:
            opened.close()


@contextlib.contextmanager
def errors_fail(opened: Any, tolerated: str = "\0") -> Iterator[None]:
    """Fails at its end if the page logged an error without `tolerated` in it."""
    errors: list[str] = []

    def thrown(error: Any) -> None:
        errors.append(str(error))

    def logged(said: Any) -> None:
        if _is_wrong(said):
            errors.append(said.text)

    opened.on("pageerror", thrown)
    opened.on("console", logged)
    try:
        yield
    finally:
        opened.remove_listener("pageerror", thrown)
        opened.remove_listener("console", logged)
    wrong = [each for each in errors if tolerated not in each]
    assert not wrong, wrong


def _is_wrong(said: Any) -> bool:
    """Whether a console message is an error of the page, and not a failed request."""
    return said.type in ("error", "warning") and "Failed to load resource" not in said.text
