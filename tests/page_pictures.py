"""Takes the screenshots for docs/page.md: `python tests/page_pictures.py docs`."""

import io
import sys
from pathlib import Path
from typing import Any

from browser import browser, tab
from page_front import page_front
from page_replies import busy_cluster, partial_reply
from PIL import Image

PICTURES: dict[str, dict[str, Any]] = {
    "page-light.png": {"viewport": {"width": 1000, "height": 800}, "color_scheme": "light"},
    "page-dark-phone.png": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}
COLOURS = 256


def main(directory: Path) -> None:
    """Writes the screenshots to a directory."""
    with page_front() as front, browser() as started:
        front.reply, front.shown = partial_reply(), busy_cluster()
        for name, options in PICTURES.items():
            with tab(started, **options) as page:
                page.goto(
                    f"{front.address}#q=Who%20opened%20the%20caf%C3%A9%20in%20%C5%81%C3%B3d%C5%BA%3F"
                )
                page.wait_for_selector(".times")
                page.wait_for_selector("text=unreachable")
                _save(page.screenshot(full_page=True), directory / name)


def _save(png: bytes, path: Path) -> None:
    """Saves an image with a palette, which has a quarter of the size and no visible difference."""
    method = Image.Quantize.MAXCOVERAGE  # keeps small details
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, method)
    image.save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
