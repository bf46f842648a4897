"""Converts reStructuredText with the markup of Sphinx, by way of HTML; includes no other files."""

from winnow.documents.document import Document
from winnow.documents.formats import html
from winnow.documents.formats.decoding import decode

_LONGEST_LINE = 1_000_000
_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "embed_stylesheet": False,
    "file_insertion_enabled": False,
    "halt_level": 5,
    "initial_header_level": 1,
    "line_length_limit": _LONGEST_LINE,
    "math_output": "LaTeX",
    "raw_enabled": False,
    # errors become no text of the document
    "report_level": 5,
    "smart_quotes": False,
    "stylesheet_path": None,
    "syntax_highlight": "none",
    "warning_stream": False,
}


def convert(data: bytes) -> Document:
    """Converts a file; the title is its first heading."""
    # of the extra `documents`
    from docutils.core import publish_parts  # noqa: PLC0415

    from winnow.documents.formats.sphinx_markup import register_unknown_markup  # noqa: PLC0415

    text = decode(data)
    register_unknown_markup(text)
    parts = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)
    return html.convert_text(parts["body"])
