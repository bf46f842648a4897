"""Metadata of a framework's documents that were made from passages."""

import logging
from typing import Any

from winnow.client.replies import Coverage, Passage
from winnow.domain.source import Source


def passage_metadata(passage: Passage, source: Source | None) -> dict[str, Any]:
    """The metadata of a passage, with its title and where it comes from.

    The fields `title`, and with a source also `source` and `citation`, replace fields of the
    passage's metadata that have these names.
    """
    metadata = {**passage.metadata, "title": passage.title}
    if source is not None:
        metadata["source"] = source.url or source.document
        metadata["citation"] = source.citation
    return metadata


def warn_if_incomplete(coverage: Coverage, logger: logging.Logger) -> None:
    """Logs a warning if a part of the index was not searched: documents cannot say so."""
    if not coverage.complete:
        logger.warning(
            "incomplete search: %d of %d passages; partial_results='forbid' makes it an error",
            coverage.searched,
            coverage.known,
        )
