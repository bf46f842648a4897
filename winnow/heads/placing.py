"""One version of a head into its slot: fetched, given room, opened, and only then put there."""

import structlog

from winnow.deadline import Clock
from winnow.errors import ArtefactError, IdentityError, NotFoundError, WinnowError
from winnow.heads.head import memory_of
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import RingMetrics
from winnow.heads.shelf import Shelf
from winnow.heads.slot import Slot

_log = structlog.get_logger("heads")
BROKEN = (ArtefactError, IdentityError, NotFoundError)
"""What is wrong with one version. Another one may be good."""


class Placing:
    """Puts versions into slots."""

    def __init__(
        self,
        loader: HeadLoader,
        shelf: Shelf,
        clock: Clock,
        metrics: RingMetrics,
        patience: float,
    ) -> None:
        """`patience`: seconds before a broken version is tried again."""
        self._loader, self._shelf, self._clock = loader, shelf, clock
        self._metrics, self._patience = metrics, patience

    async def put(self, slot: Slot, version: int, client: str = "") -> bool:
        """Puts a version into its slot, in place of the one that is there; or leaves that.

        While both are open, the greater of the two is what is counted. False if the slot had to
        leave in the meantime.

        Raises:
            OverloadedError: there is no room.
            WinnowError: as `HeadLoader`.

        """
        artefact = await self._loader.fetch(slot.id, version, client)
        if not self._shelf.has(slot):
            return False
        before, needed = self._shelf.taken(slot), memory_of(artefact.manifest)
        self._shelf.make_room(slot, max(before, needed))
        self._shelf.hold(slot)
        try:
            slot.head = await self._loader.open(artefact, client)
            before, slot.broken = needed, 0
        finally:
            self._shelf.settle(slot, before)
            self._shelf.release(slot)
        return True

    def broke(self, slot: Slot, version: int, error: WinnowError) -> None:
        """Counts a version that cannot be loaded, and says so once."""
        self._metrics.tried("broken")
        if slot.broken != version:
            _log.error(
                "a version of a head cannot be loaded",
                head=slot.id,
                version=version,
                still_serving=slot.head.manifest.version if slot.head else None,
                error=str(error),
            )
        slot.broken, slot.broken_until = version, self._clock() + self._patience

    def may_try(self, slot: Slot, version: int) -> bool:
        """Whether a version is not known to be broken, or that was long ago."""
        return slot.broken != version or self._clock() >= slot.broken_until
