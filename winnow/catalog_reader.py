"""Reads the catalog again and again. If it cannot be read, the last version stays."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from winnow.domain.catalog import Catalog
from winnow.errors import WinnowError

_log = structlog.get_logger("winnow.catalog")
CATALOG_INTERVAL = 1.0
"""Seconds between two reads of the catalog."""


InThread = Callable[[Callable[[], Catalog | None]], Awaitable[Catalog | None]]
"""Runs a function in a thread, and returns its result."""


class ReadsCatalog(Protocol):
    """A file that holds a catalog. `CatalogFile` implements it."""

    def read(self) -> Catalog | None:
        """Reads the catalog; None if there is no file. Raises a WinnowError if that fails."""


class CatalogReader:
    """Reads a catalog, and logs its changes and failures."""

    def __init__(self, file: ReadsCatalog, in_thread: InThread = asyncio.to_thread) -> None:
        """`in_thread` reads the file in a thread."""
        self._file, self._in_thread = file, in_thread
        self._last: Catalog | None = None
        self._fault = ""
        """Why the catalog cannot be read; empty if it can."""

    def assume(self, catalog: Catalog) -> None:
        """Takes a version that an earlier process has read as the last one."""
        self._last = catalog

    async def read(self) -> Catalog | None:
        """Returns the current version; None if it cannot be read.

        Before the first index is created, there may be no file. Then the catalog is empty.
        """
        try:
            catalog = await self._in_thread(self._file.read)
        except WinnowError as error:
            self._record_failure(str(error))
            return None
        if catalog is None and self._last is not None and self._last.version:
            self._record_failure("the file is missing")
            return None
        catalog, last = catalog or Catalog(), self._last
        self._fault, self._last = "", catalog
        if last is None or catalog.version != last.version:
            _log.info(
                "catalog changed",
                version=catalog.version,
                indexes=sorted(catalog.indexes),
                aliases={name: alias.index for name, alias in sorted(catalog.aliases.items())},
            )
        return catalog

    def _record_failure(self, reason: str) -> None:
        if reason != self._fault:
            _log.error("catalog cannot be read; the last version stays", reason=reason)
        self._fault = reason
