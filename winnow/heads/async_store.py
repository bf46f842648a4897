"""Reads a head store and opens heads in threads, so that the event loop never blocks.

Each call has a timeout. Checks that heads fit the encoder; does not know which are in memory.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog

from winnow.errors import ArtefactError, IdentityError, UnavailableError, WinnowError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.head import Head, open_head
from winnow.heads.store import HeadRecord, HeadStore
from winnow.inference.fair_threads import FairThreads, call_on_event_loop

_log = structlog.get_logger("heads")
Result = TypeVar("Result")
_THREADS = 4
"""Number of concurrent calls, which mostly wait for files."""
_TIMEOUT = 30.0
"""Seconds after which a call fails and its hanging thread is replaced."""
_MAX_HUNG_THREADS = 32
"""Maximum number of hanging threads that are replaced. Beyond it, calls wait for a thread."""


class AsyncHeadStore:
    """A head store with async methods, for heads of one encoder.

    `client` names the caller for fair sharing: clients take turns at the threads. Logs when the
    store becomes unreachable, and when it is reachable again.
    """

    def __init__(
        self, store: HeadStore, fingerprint: str, width: int | None, timeout: float = _TIMEOUT
    ) -> None:
        """`fingerprint`, `width`: those of the encoder; `timeout`: seconds for one call."""
        self._store, self._fingerprint, self._timeout = store, fingerprint, timeout
        self.width = width
        """Number of values of a token state; must be set before `fetch`."""
        self._threads = FairThreads(_THREADS, "load")
        self._hung_threads: set[threading.Thread] = set()
        self._reachable = True

    async def read_record(self, head: str, client: str = "") -> HeadRecord:
        """Reads the record of a head; raises the same errors as `HeadStore.record`."""
        record = await self._run(client, partial(self._store.read_record, head), head)
        if not self._reachable:
            _log.info("head store reachable again")
        self._reachable = True
        return record

    async def fetch(self, head: str, version: int, client: str = "") -> HeadArtefact:
        """Fetches and verifies a version of a head.

        Raises ArtefactError if the version is damaged, NotFoundError if it does not exist,
        IdentityError if it was trained on another encoder, and UnavailableError if the store cannot
        be reached.
        """
        return await self._run(client, partial(self._fetch, head, version), head)

    async def open(self, artefact: HeadArtefact, client: str = "") -> Head:
        """Opens a head and runs its smoke test; raises ArtefactError if either fails."""
        return await self._run(client, partial(open_head, artefact), artefact.manifest.id)

    def close(self) -> None:
        """Ends the threads. Threads that hang in the store end with the process."""
        self._threads.close(wait=False)

    def _fetch(self, head: str, version: int) -> HeadArtefact:
        artefact = self._store.fetch(head, version)
        encoder = artefact.manifest.encoder
        if (encoder.fingerprint, encoder.width) != (self._fingerprint, self.width):
            mismatch = IdentityError(
                f"head {head} version {version} was trained on encoder {encoder.fingerprint} "
                f"with states of {encoder.width} values, but this encoder is {self._fingerprint} "
                f"with {self.width}: train the head again with `winnow heads refit`"
            )
            raise mismatch.with_public(f"head {head} was trained on another encoder")
        return artefact

    async def _run(self, client: str, work: Callable[[], Result], head: str) -> Result:
        try:
            return await self._run_with_timeout(client, work)
        except UnavailableError as error:
            if self._reachable:
                _log.warning(
                    "head store unreachable; heads in memory stay in use", error=str(error)
                )
            self._reachable = False
            raise
        except WinnowError:
            raise
        except Exception as error:  # an unexpected error concerns this head only
            _log.error("head loading failed", head=head, exc_info=error)
            raise ArtefactError(f"head {head} cannot be loaded: {error!r}") from error

    async def _run_with_timeout(self, client: str, work: Callable[[], Result]) -> Result:
        """Runs `work` in a thread. The timeout starts when a thread starts the work.

        Raises UnavailableError on timeout.
        """
        loop, timer, ended = asyncio.get_running_loop(), asyncio.timeout(None), False
        thread: threading.Thread | None = None

        def start_timer() -> None:
            if not ended:
                timer.reschedule(loop.time() + self._timeout)

        def run() -> Result:
            nonlocal thread
            thread = threading.current_thread()
            call_on_event_loop(loop, start_timer)
            return work()

        try:
            async with timer:
                return await self._threads.run(client, run)
        except TimeoutError as error:
            if not timer.expired():
                raise
            self._replace_hung_thread(thread)
            silent = UnavailableError(
                f"{self._store.name} did not answer within {self._timeout:g} seconds"
            )
            public = f"the head store did not answer within {self._timeout:g} seconds"
            raise silent.with_public(public) from error
        finally:
            ended = True

    def _replace_hung_thread(self, thread: threading.Thread | None) -> None:
        self._hung_threads = {each for each in self._hung_threads if each.is_alive()}
        if thread is not None and len(self._hung_threads) < _MAX_HUNG_THREADS:
            self._hung_threads.add(thread)
            self._threads.replace(thread)
