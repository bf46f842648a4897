"""Warnings of work that is tried again and again: logged when they begin, and when they change."""

from pathlib import Path

import structlog

_log = structlog.get_logger("content_node")


class RepeatedWarnings:
    """Logs each warning about a directory once, and again if its fields change."""

    def __init__(self) -> None:
        self._last: dict[tuple[Path, str], dict[str, str | None]] = {}
        """The fields of the last warning, by directory and event."""

    def warn(
        self,
        event: str,
        directory: Path,
        *,
        exc_info: BaseException | None = None,
        **fields: str | None,
    ) -> None:
        """Logs a warning, unless the last one of this event and directory was the same."""
        if self._last.get((directory, event)) != fields:
            self._last[directory, event] = fields
            _log.warning(event, directory=str(directory), **fields, exc_info=exc_info)

    def forget(self, root: Path) -> None:
        """Forgets the warnings about a directory and those below it, because it is gone."""
        self._last = {
            key: fields for key, fields in self._last.items() if not key[0].is_relative_to(root)
        }
