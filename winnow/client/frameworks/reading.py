"""Documents of a framework as texts to read, and readings as metadata of the documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from winnow.client.reading import ReadReply, TextFields, TextReading

_MAX_TITLE = 1_000
"""Characters of a title that servers accept."""


def text_to_read(text: str, metadata: Mapping[str, Any]) -> TextFields:
    """A text to read, with the `title` in its metadata, if there is one."""
    title = metadata.get("title")
    return TextFields(text=text, title=title[:_MAX_TITLE] if isinstance(title, str) else "")


def most_relevant(reply: ReadReply, number: int | None = None) -> Sequence[TextReading]:
    """The readings of the texts that are most relevant, the best first; None for all texts."""
    return sorted(reply.readings, key=lambda each: -each.relevance_score)[:number]


def reading_metadata(reading: TextReading) -> dict[str, Any]:
    """What a reading says about its text: the answer in it, and how likely it is.

    The offsets count characters of the text. A text without words has no answer.
    """
    return {
        "relevance_score": reading.relevance_score,
        "answer": reading.text,
        "answer_start": reading.start,
        "answer_end": reading.end,
        "confidence": reading.confidence,
    }
