"""Takes the screenshots for docs/page.md: `python tests/page_pictures.py docs`."""

import io
import sys
from pathlib import Path
from typing import Any

from browser import browser, tab
from page_front import PageFront, page_front
from page_replies import CAFE, GUIDE, busy_cluster, partial_reply
from PIL import Image

from winnow.domain.source import HEADING_SEPARATOR

PICTURES: dict[str, dict[str, Any]] = {
    "page-light.png": {"viewport": {"width": 1000, "height": 800}, "color_scheme": "light"},
    "page-dark-phone.png": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}
DOCUMENT = "page-document.png"
COLOURS = 256
QUESTION = "Who%20opened%20the%20caf%C3%A9%20in%20%C5%81%C3%B3d%C5%BA%3F"


def main(directory: Path) -> None:
    """Writes the screenshots to a directory."""
    with page_front() as front, browser() as started:
        front.reply, front.shown = partial_reply(), busy_cluster()
        _add_guide(front)
        for name, options in PICTURES.items():
            with tab(started, **options) as page:
                page.goto(f"{front.address}#q={QUESTION}")
                page.wait_for_selector(".times")
                page.wait_for_selector("text=unreachable")
                _save(page.screenshot(full_page=True), directory / name)
        with tab(started, viewport={"width": 1000, "height": 560}) as page:
            page.goto(f"{front.address}#q={QUESTION}")
            page.locator(".answer .source a").first.click()
            page.wait_for_selector(".cited")
            _save(page.screenshot(full_page=True), directory / DOCUMENT)


def _add_guide(front: PageFront) -> None:
    """Adds the document that the answer cites."""
    cafes, first = "Cafés", HEADING_SEPARATOR.join(("Cafés", "The first café"))
    front.stored.put(
        "guides/Łódź.pdf",
        (cafes, "Weavers met in the back rooms of bakeries. Coffee was sold by chemists.", 3),
        (first, CAFE, 4),
        (first, "Two others followed within a year, both near the new railway station.", 4),
        ("Mills", "The first mill was built of brick, and had its own fire brigade.", 5),
        url=GUIDE,
    )
    front.reply.answers[0].passage.id = "guides/Łódź.pdf#1"  # type: ignore[union-attr]


def _save(png: bytes, path: Path) -> None:
    """Saves an image with a palette, which has a quarter of the size and no visible difference."""
    method = Image.Quantize.MAXCOVERAGE  # keeps small details
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, method)
    image.save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
