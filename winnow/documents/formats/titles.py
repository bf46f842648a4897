"""Titles of documents, without the titles that programs fill in. Pure."""

import re

_MEANINGLESS = re.compile(
    r"(?:microsoft )?(?:word|power ?point|excel)(?: presentation| document)?(?: - .*)?"
    r"|(?:slide|presentation|document|dokument|doc|diapositive|folie|page)[ _-]?\d*"
    r"|(?:untitled|unnamed|unknown|title|no title).*"
    r"|.*\.(?:docx?|pptx?|dvi|tex|indd|qxd|pdf|eps|ps)",
    re.IGNORECASE,
)
_MAX_TITLE = 300
"""Limit of characters of a title."""


def best_title(*candidates: str) -> str:
    """Returns the first title that tells something; empty if none does."""
    titles = (" ".join(each.split()) for each in candidates)
    return next((t[:_MAX_TITLE] for t in titles if t and not _MEANINGLESS.fullmatch(t)), "")
