"""Whether another version of a head is to be served: looked up now and then, while it is used.

The version in memory serves until the new one is loaded, verified and warm; if that cannot be, it
serves on.
"""

import asyncio

import structlog

from winnow.deadline import Clock
from winnow.errors import UnavailableError, WinnowError
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import RingMetrics
from winnow.heads.placing import BROKEN, Placing
from winnow.heads.reach import Reach
from winnow.heads.shelf import Shelf
from winnow.heads.slot import Slot
from winnow.heads.store import Current

_log = structlog.get_logger("heads")


class Looks:
    """Looks into the store for heads that are in memory."""

    def __init__(
        self,
        loader: HeadLoader,
        shelf: Shelf,
        placing: Placing,
        clock: Clock,
        metrics: RingMetrics,
        reach: Reach,
        refresh: float,
    ) -> None:
        """`refresh`: seconds between two looks at one head."""
        self._loader, self._shelf, self._placing = loader, shelf, placing
        self._clock, self._metrics, self._refresh = clock, metrics, refresh
        self._reach = reach

    def look(self, slot: Slot) -> None:
        """Begins to look, if it is time; nobody waits for it."""
        if slot.looking is None and self._clock() >= slot.looked + self._refresh:
            slot.looking = asyncio.create_task(self._look(slot))

    async def _look(self, slot: Slot) -> None:
        """Never fails: what is in memory serves on."""
        result = "failed"
        try:
            current = await self._loader.current(slot.id)
            self._reach.found()
            self._shelf.note(slot, current)
            await self._follow(slot, current)
            result, slot.complaint = "ok", ""
        except Exception as error:  # noqa: BLE001 (nobody else would hear of it)
            self._complain(slot, error)
        finally:
            self._metrics.looked(result)
            slot.looked = self._clock()
            slot.looking = None

    async def _follow(self, slot: Slot, current: Current) -> None:
        version = current.version
        serving = slot.head.manifest.version if slot.head else version
        if version == serving or not self._placing.may_try(slot, version):
            return
        try:
            if await self._placing.put(slot, version):
                self._metrics.tried("replaced")
        except BROKEN as error:
            self._placing.broke(slot, version, error)

    def _complain(self, slot: Slot, error: Exception) -> None:
        """Says once why the version in memory may be an old one."""
        if isinstance(error, UnavailableError):
            self._reach.lost(error)
        elif str(error) != slot.complaint:
            trace = None if isinstance(error, WinnowError) else error
            _log.error("a head serves on as it is", head=slot.id, error=str(error), exc_info=trace)
        slot.complaint = str(error)
