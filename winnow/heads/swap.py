"""Watches the store for new versions of heads, and swaps them in under load.

The version in memory stays in use until the new version is loaded and has passed its smoke test. If
the new version fails to load, the old one stays in use.
"""

import asyncio

import structlog

from winnow.deadline import Clock
from winnow.errors import ArtefactError, IdentityError, NotFoundError, UnavailableError, WinnowError
from winnow.heads.async_store import AsyncHeadStore
from winnow.heads.cache import HeadCache, HeadSlot
from winnow.heads.head import estimate_memory
from winnow.heads.metrics import EncoderGroupMetrics

_log = structlog.get_logger("heads")
VERSION_ERRORS = (ArtefactError, IdentityError, NotFoundError)
"""Errors that affect only one version of a head; another version may work."""


class HeadSwap:
    """Replaces the version of a head: fetches it, reserves memory, opens it, then swaps."""

    def __init__(
        self,
        store: AsyncHeadStore,
        cache: HeadCache,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        retry_after: float,
    ) -> None:
        """`retry_after`: seconds before a broken version is tried again."""
        self._store, self._cache, self._clock = store, cache, clock
        self._metrics, self._retry_after = metrics, retry_after

    async def swap(self, slot: HeadSlot, version: int, client: str = "") -> bool:
        """Replaces the version in a slot. If that fails, the slot keeps its version.

        While both versions are open, memory is reserved for the larger one. Returns False if the
        slot was evicted while the version was fetched. Raises OverloadedError if there is no room,
        or another WinnowError if the store fails.
        """
        artefact = await self._store.fetch(slot.id, version, client)
        if slot not in self._cache:
            return False
        size, new_size = self._cache.reserved_bytes(slot), estimate_memory(artefact.manifest)
        self._cache.reserve(slot, max(size, new_size))
        self._cache.hold(slot)
        try:
            slot.head = await self._store.open(artefact, client)
            size, slot.broken_version = new_size, 0
        finally:
            self._cache.shrink(slot, size)
            self._cache.release(slot)
        return True

    def record_broken(self, slot: HeadSlot, version: int, error: WinnowError) -> None:
        """Records that a version cannot be loaded, and logs it once."""
        self._metrics.count_load("broken")
        if slot.broken_version != version:
            _log.error(
                "head version cannot be loaded",
                head=slot.id,
                version=version,
                still_serving=slot.version,
                error=str(error),
            )
        slot.broken_version, slot.retry_broken_at = version, self._clock() + self._retry_after

    def may_try(self, slot: HeadSlot, version: int) -> bool:
        """Returns whether to load a version: False if it is broken, and no retry is due."""
        return slot.broken_version != version or self._clock() >= slot.retry_broken_at


class VersionWatcher:
    """Checks the store for a new version of a head when the head is used."""

    def __init__(
        self,
        store: AsyncHeadStore,
        cache: HeadCache,
        swap: HeadSwap,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        refresh: float,
    ) -> None:
        """`refresh`: seconds between two checks of one head."""
        self._store, self._cache, self._swap = store, cache, swap
        self._clock, self._metrics, self._refresh = clock, metrics, refresh

    def check(self, slot: HeadSlot) -> None:
        """Starts a check in the background, if one is due."""
        if slot.check_task is None and self._clock() >= slot.checked_at + self._refresh:
            slot.check_task = asyncio.create_task(self._check(slot))

    async def _check(self, slot: HeadSlot) -> None:
        """Reads the record and swaps the version if needed. Logs errors instead of raising."""
        result = "failed"
        try:
            record = await self._store.read_record(slot.id)
            self._cache.set_record(slot, record)
            await self._swap_if_new(slot, record.version)
            result, slot.last_error = "ok", ""
        except Exception as error:  # noqa: BLE001 (no caller awaits the task)
            self._log_failure(slot, error)
        finally:
            self._metrics.count_check(result)
            slot.checked_at = self._clock()
            slot.check_task = None

    async def _swap_if_new(self, slot: HeadSlot, version: int) -> None:
        if version == (slot.version or version) or not self._swap.may_try(slot, version):
            return
        try:
            if await self._swap.swap(slot, version):
                self._metrics.count_load("replaced")
        except VERSION_ERRORS as error:
            self._swap.record_broken(slot, version, error)

    def _log_failure(self, slot: HeadSlot, error: Exception) -> None:
        """Logs the error of a check, unless the previous check had the same error.

        `AsyncHeadStore` logs that the store is unreachable, once for all heads.
        """
        if not isinstance(error, UnavailableError) and str(error) != slot.last_error:
            trace = None if isinstance(error, WinnowError) else error
            _log.error(
                "version check failed",
                head=slot.id,
                still_serving=slot.version,
                error=str(error),
                exc_info=trace,
            )
        slot.last_error = str(error)
