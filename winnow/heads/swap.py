"""New versions of heads: watched for, and swapped in under load.

The version in memory serves until the new one is loaded, verified and warm. If that fails, it
keeps serving.
"""

import asyncio

import structlog

from winnow.deadline import Clock
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotFoundError,
    UnavailableError,
    WinnowError,
)
from winnow.heads.cache import HeadCache, HeadSlot
from winnow.heads.head import memory_of
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.store import Current

_log = structlog.get_logger("heads")
BROKEN = (ArtefactError, IdentityError, NotFoundError)
"""Errors of one version. Another version may work."""


class HeadSwap:
    """Puts one version of a head into its slot: fetched, given room, opened, and only then used."""

    def __init__(
        self,
        loader: HeadLoader,
        cache: HeadCache,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        retry_after: float,
    ) -> None:
        """`retry_after`: seconds before a broken version is tried again."""
        self._loader, self._cache, self._clock = loader, cache, clock
        self._metrics, self._retry_after = metrics, retry_after

    async def swap(self, slot: HeadSlot, version: int, client: str = "") -> bool:
        """Replaces the version in a slot. If that fails, the slot keeps its version.

        While both versions are open, the larger of the two is counted.

        Returns:
            False if the slot left the cache in the meantime.

        Raises:
            OverloadedError: there is no room.
            WinnowError: as `HeadLoader`.

        """
        artefact = await self._loader.fetch(slot.id, version, client)
        if slot not in self._cache:
            return False
        before, needed = self._cache.taken(slot), memory_of(artefact.manifest)
        self._cache.make_room(slot, max(before, needed))
        self._cache.hold(slot)
        try:
            slot.head = await self._loader.open(artefact, client)
            before, slot.broken = needed, 0
        finally:
            self._cache.settle(slot, before)
            self._cache.release(slot)
        return True

    def broke(self, slot: HeadSlot, version: int, error: WinnowError) -> None:
        """Records that a version cannot be loaded, and logs it once."""
        self._metrics.tried("broken")
        if slot.broken != version:
            _log.error(
                "a version of a head cannot be loaded",
                head=slot.id,
                version=version,
                still_serving=slot.version,
                error=str(error),
            )
        slot.broken, slot.broken_until = version, self._clock() + self._retry_after

    def may_try(self, slot: HeadSlot, version: int) -> bool:
        """Returns whether a version is not known to be broken, or is due for another try."""
        return slot.broken != version or self._clock() >= slot.broken_until


class VersionWatcher:
    """Checks the store for new versions of the heads in memory, while these are used."""

    def __init__(
        self,
        loader: HeadLoader,
        cache: HeadCache,
        swap: HeadSwap,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        refresh: float,
    ) -> None:
        """`refresh`: seconds between two checks of one head."""
        self._loader, self._cache, self._swap = loader, cache, swap
        self._clock, self._metrics, self._refresh = clock, metrics, refresh

    def check(self, slot: HeadSlot) -> None:
        """Starts a check in the background, if one is due."""
        if slot.checking is None and self._clock() >= slot.checked + self._refresh:
            slot.checking = asyncio.create_task(self._check(slot))

    async def _check(self, slot: HeadSlot) -> None:
        """Never fails: the version in memory keeps serving."""
        result = "failed"
        try:
            current = await self._loader.current(slot.id)
            self._cache.note(slot, current)
            await self._follow(slot, current)
            result, slot.complaint = "ok", ""
        except Exception as error:  # noqa: BLE001 (no caller would hear of it)
            self._complain(slot, error)
        finally:
            self._metrics.looked(result)
            slot.checked = self._clock()
            slot.checking = None

    async def _follow(self, slot: HeadSlot, current: Current) -> None:
        version = current.version
        if version == (slot.version or version) or not self._swap.may_try(slot, version):
            return
        try:
            if await self._swap.swap(slot, version):
                self._metrics.tried("replaced")
        except BROKEN as error:
            self._swap.broke(slot, version, error)

    def _complain(self, slot: HeadSlot, error: Exception) -> None:
        """Logs once why the version in memory may be an old one.

        The loader logs that the store is unreachable, once for all heads.
        """
        if not isinstance(error, UnavailableError) and str(error) != slot.complaint:
            trace = None if isinstance(error, WinnowError) else error
            _log.error(
                "version check failed",
                head=slot.id,
                still_serving=slot.version,
                error=str(error),
                exc_info=trace,
            )
        slot.complaint = str(error)
