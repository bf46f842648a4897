"""From a store to open heads, in threads.

Knows the encoder whose states heads will be given; does not know which heads are in memory.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import structlog

from winnow.errors import ArtefactError, IdentityError, UnavailableError, WinnowError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.head import Head, open_head
from winnow.heads.store import Current, HeadStore
from winnow.inference.fair_threads import FairThreads, tell

_log = structlog.get_logger("heads")
Result = TypeVar("Result")
_THREADS = 4
"""Loads at a time: most of a load is waiting for files."""
_LONGEST = 30.0
"""Seconds after which a thread counts as lost: a store that hangs must not take them all."""
_MOST_LOST = 32
"""Threads that may hang at a time; beyond, loads wait."""


class HeadLoader:
    """Reads a store, and opens heads of one encoder.

    Logs when the store becomes unreachable, and when it is back.
    """

    def __init__(
        self, store: HeadStore, fingerprint: str, width: int | None, longest: float = _LONGEST
    ) -> None:
        """`fingerprint`, `width`: of the encoder; `longest`: seconds that the store may take."""
        self._store, self._fingerprint, self._longest = store, fingerprint, longest
        self.width = width
        """None until it is known; nothing is fetched before."""
        self._threads = FairThreads(_THREADS, "load")
        self._lost: set[threading.Thread] = set()
        self._reachable = True

    async def current(self, head: str, client: str = "") -> Current:
        """Returns which version of a head is served; raises as `HeadStore.current`.

        `client`: a key of the caller; clients take turns.
        """
        current = await self._run(client, partial(self._store.current, head), head)
        if not self._reachable:
            _log.info("the head store can be reached again")
        self._reachable = True
        return current

    async def fetch(self, head: str, version: int, client: str = "") -> HeadArtefact:
        """Returns a version of a head, verified.

        Raises:
            ArtefactError: it is damaged.
            NotFoundError: it is not there.
            IdentityError: it was trained on another encoder.
            UnavailableError: the store cannot be reached.

        """
        return await self._run(client, partial(self._fetch, head, version), head)

    async def open(self, artefact: HeadArtefact, client: str = "") -> Head:
        """Opens a head and tries it out; raises ArtefactError if it does not work."""
        return await self._run(client, partial(open_head, artefact), artefact.manifest.id)

    def close(self) -> None:
        """Ends the threads; a thread that waits for a store that hangs ends with the process."""
        self._threads.close(wait=False)

    def _fetch(self, head: str, version: int) -> HeadArtefact:
        artefact = self._store.fetch(head, version)
        encoder = artefact.manifest.encoder
        if (encoder.fingerprint, encoder.width) != (self._fingerprint, self.width):
            other = IdentityError(
                f"head {head} version {version} was trained on encoder {encoder.fingerprint} "
                f"with states of {encoder.width} values, and this one is {self._fingerprint} with "
                f"{self.width}: train it again with `winnow heads refit`"
            )
            raise other.with_public(f"head {head} was trained on another encoder")
        return artefact

    async def _run(self, client: str, work: Callable[[], Result], head: str) -> Result:
        try:
            return await self._in_time(client, work)
        except UnavailableError as error:
            if self._reachable:
                _log.warning(
                    "the head store cannot be reached: heads in memory serve on", error=str(error)
                )
            self._reachable = False
            raise
        except WinnowError:
            raise
        except Exception as error:  # an unknown failure concerns this head only
            _log.error("a head cannot be loaded", head=head, exc_info=error)
            raise ArtefactError(f"head {head} cannot be loaded: {error!r}") from error

    async def _in_time(self, client: str, work: Callable[[], Result]) -> Result:
        """Returns the result of `work`; the time that it waits for a thread does not count.

        Raises:
            UnavailableError: `work` takes too long.

        """
        loop, timer, ended = asyncio.get_running_loop(), asyncio.timeout(None), False

        def begun() -> None:
            if not ended:
                timer.reschedule(loop.time() + self._longest)

        worker = _Worker(work, lambda: tell(loop, begun))
        try:
            async with timer:
                return await self._threads.run(client, worker.run)
        except TimeoutError as error:
            if not timer.expired():
                raise
            self._lose(worker)
            silent = UnavailableError(
                f"{self._store.name} has not answered for {self._longest:g} seconds"
            )
            public = f"the store of heads has not answered for {self._longest:g} seconds"
            raise silent.with_public(public) from error
        finally:
            ended = True

    def _lose(self, worker: "_Worker[Any]") -> None:
        """Replaces a thread that hangs."""
        thread = worker.thread
        self._lost = {each for each in self._lost if each.is_alive()}
        if thread is not None and len(self._lost) < _MOST_LOST:
            self._lost.add(thread)
            self._threads.replace(thread)


class _Worker(Generic[Result]):
    """Some work, and the thread that does it."""

    def __init__(self, work: Callable[[], Result], begun: Callable[[], object]) -> None:
        self._work, self._begun = work, begun
        self.thread: threading.Thread | None = None

    def run(self) -> Result:
        self.thread = threading.current_thread()
        self._begun()
        return self._work()
