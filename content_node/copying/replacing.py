"""Copies an index until the copy has all writes, and lets the copy replace it.

While the last writes are copied, neither index takes writes: front nodes repeat them. So no
acknowledged write is missing in the copy.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from winnow.catalog import CatalogFile
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.run import CopyListener, CopyRun
from winnow.deadline import Deadline, Sleep
from winnow.domain.catalog import Catalog
from winnow.domain.copying import copy_of, with_hold, with_replaced_source, without_hold
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError
from winnow.faultpoints import reach
from winnow.security.peers import PLAIN_TEXT, PeerChannels

_FEW_WRITES = 64
"""Number of writes that are copied in a moment, so that the source may be held meanwhile."""
_HOLD_SECONDS = 30.0
"""Seconds in which nodes read the catalog and close the source."""
_LAST_SECONDS = 30.0
"""Seconds in which the last writes are copied. Otherwise the source takes writes again."""
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 2.0, 10.0
"""Seconds until work is repeated. A node that restarts is soon back."""
_MAX_HELD_RETRY_SECONDS = 60.0
"""Seconds until work is repeated that held writes back. Repeated switches that fail must not keep
writes from the source most of the time.
"""
Result = TypeVar("Result")


class IndexCopier:
    """Copies an index of the catalog. Runs that nodes disturb are begun again."""

    def __init__(
        self,
        file: CatalogFile,
        name: str,
        *,
        encoder: CopyEncoder,
        listener: CopyListener,
        peers: PeerChannels = PLAIN_TEXT,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`name` is the copy, which the catalog has already; `encoder` is that of its bundle."""
        self._file, self._name, self._encoder = file, name, encoder
        self._listener, self._peers, self._sleep = listener, peers, sleep
        self._holds = 0
        """Number of times that the source took no writes."""

    async def catch_up(self) -> None:
        """Copies passages and writes until only the newest writes may be missing.

        Raises IdentityError if another process copies the index, too. Raises ArtefactError if the
        source no longer has writes that the copy lacks.
        """
        await self._repeat(self._catch_up)

    async def replace_source(self) -> float:
        """Copies all writes; then the copy takes over the writes and the aliases of its source.

        Returns for how many seconds no writes were taken. Raises as `catch_up`. After an error, the
        source takes writes again.
        """
        return await self._repeat(self._replace_source)

    async def _catch_up(self) -> None:
        run = await self._begin()
        async with await run.open():
            await self._copy_most(run)

    async def _replace_source(self) -> float:
        run = await self._begin()
        async with await run.open():
            await self._copy_most(run)
            await run.source.check_settled()
            started = time.monotonic()
            self._holds += 1
            try:
                held_by = await run.change(partial(_held, name=run.name, run=run.number))
                reach("copy.held")
                await self._copy_last(run, copy_of(held_by, run.name).held)
            except BaseException:
                await self._release(run)
                raise
            return time.monotonic() - started

    async def _copy_last(self, run: CopyRun, held: int) -> None:
        """Copies the writes before the hold, and switches."""
        ended = await run.source.wait_until_closed(held, Deadline.after(_HOLD_SECONDS))
        reach("copy.closed")
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await run.follow({shard: each.info.sequence for shard, each in ended.items()})
                reach("copy.complete")
                copied = await run.check_complete()
        except TimeoutError as error:
            raise UnavailableError(
                f"the last writes were not copied in {_LAST_SECONDS:g} s, and {run.source.name} "
                "takes writes again"
            ) from error
        positions = {shard: each.info.sequence for shard, each in copied.items()}
        await run.change(
            lambda catalog: with_replaced_source(
                catalog, run.name, run.number, held, positions, run.logs
            )
        )
        reach("copy.replaced")

    async def _release(self, run: CopyRun) -> None:
        """Lets the source take writes again, unless it was replaced."""
        source = run.source.name
        try:
            await run.change(lambda catalog: _released(catalog, run.name, run.number, source))
        except WinnowError as error:
            self._listener.say(
                f"{source} may take no writes ({error}): run this command again, or point an "
                f"alias to {source}"
            )

    async def _begin(self) -> CopyRun:
        return await CopyRun.begin(
            self._file, self._name, self._encoder, self._listener, self._peers
        )

    async def _copy_most(self, run: CopyRun) -> None:
        await run.fill()
        self._listener.start("copying later writes", None)
        while await run.follow() > _FEW_WRITES:
            await run.record()
        await run.record()

    async def _repeat(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Repeats work while nodes do not reply, and tells each new reason."""
        reason, pause = "", _RETRY_SECONDS
        while True:
            holds = self._holds
            try:
                return await work()
            except (UnavailableError, DeadlineExceededError) as error:
                if str(error) != reason:
                    reason = str(error)
                    self._listener.say(f"{reason}; trying again")
                has_held = self._holds > holds
                await self._sleep(pause if has_held else min(pause, _MAX_RETRY_SECONDS))
                pause = min(2 * pause, _MAX_HELD_RETRY_SECONDS)


def _held(catalog: Catalog, name: str, run: int) -> Catalog:
    return with_hold(catalog, name, run)


def _released(catalog: Catalog, name: str, run: int, source: str) -> Catalog:
    copy = catalog.copies.get(name)
    if copy is None or (copy.run, copy.source) != (run, source):
        return catalog
    return without_hold(catalog, source)
