"""Converts Markdown (CommonMark with tables), by way of HTML."""

import re

from winnow.documents.document import Document
from winnow.documents.formats import html
from winnow.documents.formats.decoding import decode

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


def convert(data: bytes) -> Document:
    """Converts a file; the title is that of its front matter, else its first heading."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - of the extra `documents`

    text = decode(data)
    title = ""
    if front := _FRONT_MATTER.match(text):
        named = _TITLE.search(front[1])
        title = named[1].strip("\"'") if named else ""
        text = text[front.end() :]
    return html.convert_text(MarkdownIt("commonmark").enable("table").render(text), title=title)
