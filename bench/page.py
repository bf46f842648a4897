"""How long a browser takes to show an answer, beyond the call that brings it.

    winnow demo    # in another terminal: serves HTTP, too
    python -m bench.page --http http://127.0.0.1:8088 --questions deploy/demo/questions.jsonl

Needs Debian's chromium. In Chromium without a window each question is asked twice: by opening the
page with the question in its address, from the beginning of the navigation to the paint of the
answer; and in a page that is open, from the key press, with `fresh`, so that passages are read
again. The call's time is the browser's own, from the request to the last byte of its reply.
Questions that are not answered count as failed.
"""

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from winnow.cli.questions import read_questions

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
_FIRST = 2
"""Questions that are asked before any is measured."""
_SEEN = """() => {
  const [painted] = performance.getEntriesByName("winnow-answer").slice(-1);
  if (!painted) return null;
  const [call] = performance.getEntriesByType("resource")
    .filter((each) => each.name.endsWith("/v1/answer")).slice(-1);
  return { asked: painted.startTime, painted: painted.startTime + painted.duration,
           call: call.duration };
}"""
_SHOWN = ".times, .problem"
"""What is drawn once the answer was painted, or instead of it."""
_CLEAR = """() => {
  performance.clearMeasures();
  performance.clearResourceTimings();
  document.getElementById("result").replaceChildren();
}"""
_FRESHLY = """() => { document.getElementById("fresh").checked = true; }"""
Row = tuple[float, float] | None
"""Milliseconds until the answer was painted, and those of the call; None if there was none."""


def open_page(page: Any, question: str) -> Row:
    """Asks in a page that is open."""
    page.evaluate(_CLEAR)
    page.fill("#question", question)
    page.press("#question", "Enter")
    seen = _seen(page)
    return (seen["painted"] - seen["asked"], seen["call"]) if seen else None


def new_page(page: Any, address: str, question: str) -> Row:
    """Opens the page with the question in its address."""
    page.goto("about:blank")
    page.goto(f"{address}/#q={quote(question)}")
    seen = _seen(page)
    return (seen["painted"], seen["call"]) if seen else None


def run(address: str, questions: Sequence[str]) -> dict[str, list[Row]]:
    """Asks all questions both ways, one after the other."""
    rows: dict[str, list[Row]] = {"open page": [], "new page": []}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        # nothing is intercepted: every file of the page would pass through the driver
        standing, opened = browser.new_page(), browser.new_page()
        standing.goto(address)
        standing.evaluate(_FRESHLY)
        for place, question in enumerate(questions):
            both = {
                "new page": new_page(opened, address, question),
                "open page": open_page(standing, question),
            }
            for way, row in both.items():
                rows[way] += [row] if place >= _FIRST else []
        browser.close()
    return rows


def _seen(page: Any) -> dict[str, float] | None:
    """What the browser measured of the last question; None if it was not answered."""
    page.wait_for_selector(_SHOWN)
    seen: dict[str, float] | None = page.evaluate(_SEEN)
    return seen


def figures(rows: Sequence[Row]) -> dict[str, float]:
    """Milliseconds."""
    answered = [row for row in rows if row]
    beyond = sorted(painted - call for painted, call in answered)
    return {
        "questions": len(answered),
        "failed": len(rows) - len(answered),
        "painted_p50": statistics.median(painted for painted, _ in answered),
        "call_p50": statistics.median(call for _, call in answered),
        "beyond_p50": statistics.median(beyond),
        "beyond_p95": beyond[int(0.95 * (len(beyond) - 1))],
        "beyond_max": beyond[-1],
    }


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.page", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--http", default="http://127.0.0.1:8088", help="address of a front")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=100, help="questions at most")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    questions = [each.question for each in read_questions(options.questions, options.limit)]
    rows = run(options.http.rstrip("/"), questions)
    made = {way: figures(own) for way, own in rows.items()}
    if options.json:
        print(json.dumps(made, indent=2))
        return 0
    for way, each in made.items():
        print(
            f"{way}: painted after {each['painted_p50']:.1f} ms, call {each['call_p50']:.1f} ms; "
            f"beyond the call {each['beyond_p50']:.1f} ms (p95 {each['beyond_p95']:.1f}, "
            f"max {each['beyond_max']:.1f}) of {each['questions']:.0f} questions; "
            f"{each['failed']:.0f} failed"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
