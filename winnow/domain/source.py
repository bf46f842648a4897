"""The document from which a passage was cut, as its metadata describes it. Pure.

Anybody may set these metadata fields. A value of the wrong type counts as absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADING_SEPARATOR = " › "  # noqa: RUF001
"""Separates the headings of a heading path in metadata."""
_WEB = ("http://", "https://")
_MAX_NUMBER = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document, and the place in it from which a passage was cut."""

    document: str
    """Path of the document, relative to its folder; `/` separates names."""
    page: int | None = None
    """Number of the page on which the passage begins, from 1."""
    headings: tuple[str, ...] = ()
    """Headings above the passage, the outermost first."""
    url: str = ""
    """Web address of the document, with http or https; empty if unknown."""
    start: int | None = None
    """Offset of the passage in the document's converted text, in code points."""
    end: int | None = None
    """Offset after the passage's last character."""

    @property
    def citation(self) -> str:
        """The source in one line, such as `policy.pdf, page 4, Archive areas`."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(filter(None, (self.document, page, *self.headings[-1:])))


def source_of(metadata: Mapping[str, Any]) -> Source | None:
    """Returns the source of a passage with this metadata; None without a document."""
    document = _text(metadata, "document")
    if not document.strip():
        return None
    start, end = _number(metadata, "start"), _number(metadata, "end")
    if start is None or end is None or start > end:
        start = end = None
    headings = map(str.strip, _text(metadata, "heading").split(HEADING_SEPARATOR))
    url = _text(metadata, "url")
    return Source(
        document=document,
        page=_number(metadata, "page"),
        headings=tuple(filter(None, headings)),
        url=url if url.lower().startswith(_WEB) else "",
        start=start,
        end=end,
    )


def _text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    return value if isinstance(value, str) else ""


def _number(metadata: Mapping[str, Any], name: str) -> int | None:
    """Returns a whole number that fits into 32 bits. Indexed numbers may be floats."""
    value = metadata.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MAX_NUMBER and value == int(value) else None
