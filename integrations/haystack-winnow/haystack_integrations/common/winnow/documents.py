"""Haystack documents as texts to read."""

import logging
from collections.abc import Sequence

from haystack import Document

from winnow.client.frameworks import text_to_read
from winnow.client.reading import TextFields

_LOGGER = logging.getLogger(__name__)


def documents_with_text(documents: Sequence[Document]) -> list[Document]:
    """The documents that have text. Logs a warning about each of the others."""
    for each in documents:
        if each.content is None:
            _LOGGER.warning("document %s has no text and is left out", each.id)
    return [each for each in documents if each.content is not None]


def texts_to_read(documents: Sequence[Document]) -> list[TextFields]:
    """The texts and titles of documents."""
    return [text_to_read(each.content or "", each.meta) for each in documents]
