"""From a store to open heads, in threads.

Knows the encoder whose states heads will be given; does not know which heads are in memory.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog

from winnow.errors import ArtefactError, IdentityError, WinnowError
from winnow.heads.artefact import HeadArtefact
from winnow.heads.head import Head, open_head
from winnow.heads.store import Current, HeadStore
from winnow.inference.fair_threads import FairThreads

_log = structlog.get_logger("heads")
Result = TypeVar("Result")
_THREADS = 4
"""Loads at a time: most of a load is waiting for files."""


class HeadLoader:
    """Looks into a store, and opens heads of one encoder."""

    def __init__(self, store: HeadStore, fingerprint: str, width: int | None) -> None:
        """`fingerprint`, `width`: of the encoder."""
        self._store, self._fingerprint = store, fingerprint
        self.width = width
        """None until it is known; nothing is fetched before."""
        self._threads = FairThreads(_THREADS, "load")

    async def current(self, head: str, client: str = "") -> Current:
        """Which version of a head is served; raises as `HeadStore.current`.

        `client`: a key of whoever waits for it; clients take turns.
        """
        return await self._run(client, partial(self._store.current, head), head)

    async def fetch(self, head: str, version: int, client: str = "") -> HeadArtefact:
        """A version of a head, verified.

        Raises:
            ArtefactError: it is damaged.
            NotFoundError: it is not there.
            IdentityError: it is of another encoder.
            UnavailableError: the store cannot be reached.

        """
        return await self._run(client, partial(self._fetch, head, version), head)

    async def open(self, artefact: HeadArtefact, client: str = "") -> Head:
        """An open head that has run; raises ArtefactError if it does not work."""
        return await self._run(client, partial(open_head, artefact), artefact.manifest.id)

    def close(self) -> None:
        """Ends the threads; one that waits for a store that hangs ends with the process."""
        self._threads.close(wait=False)

    def _fetch(self, head: str, version: int) -> HeadArtefact:
        artefact = self._store.fetch(head, version)
        encoder = artefact.manifest.encoder
        if (encoder.fingerprint, encoder.width) != (self._fingerprint, self.width):
            raise IdentityError(
                f"head {head} version {version} was trained on encoder {encoder.fingerprint} "
                f"with states of {encoder.width} values, and this one is {self._fingerprint} with "
                f"{self.width}: train it anew with `winnow heads refit`"
            )
        return artefact

    async def _run(self, client: str, work: Callable[[], Result], head: str) -> Result:
        try:
            return await self._threads.run(client, work)
        except WinnowError:
            raise
        except Exception as error:  # whatever it is, it is this head's
            _log.error("a head cannot be loaded", head=head, exc_info=error)
            raise ArtefactError(f"head {head} cannot be loaded: {error!r}") from error
