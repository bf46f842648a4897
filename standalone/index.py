"""An index that a Python program opens in its own process, without a server.

    from winnow import Index
    with Index.open("my-index") as index:
        index.ask("Who won the Tour de France in 2015?").answer

An index has the methods of `winnow.client` and answers as a front node does.
"""

import asyncio
import atexit
import contextlib
import gc
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from prometheus_client import CollectorRegistry

from winnow.client.aio import AsyncClientApi
from winnow.client.calls import Call, limited_timeout, request_id_metadata, set_tenant
from winnow.client.client import ClientApi
from winnow.errors import UnavailableError
from winnow.loop_thread import LoopThread
from winnow.packaged import default_bundle
from winnow.standalone.composing.embedded import EmbeddedServices, open_embedded
from winnow.standalone.settings import StandaloneSettings
from winnow.storage import absolute_url
from winnow.uncancelled import run_uncancelled

Result = TypeVar("Result")


class AsyncIndex(AsyncClientApi):
    """An index for asyncio programs. An `async with` block opens it, and closes it at the end.

    Use it only in the event loop of that block.
    """

    def __init__(self, settings: StandaloneSettings, *, writable: bool, tenant: str = "") -> None:
        """Opens nothing yet. Programs call `open` instead."""
        self._settings, self._writable, self._tenant = settings, writable, tenant
        self._stack = contextlib.AsyncExitStack()
        self._embedded: EmbeddedServices | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._is_entered = False

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        bundle: str | Path | None = None,
        heads: str = "",
        writable: bool = False,
        config: str | Path | None = None,
        tenant: str = "",
    ) -> Self:
        """Returns an index that `async with` opens. Arguments and errors are those of `Index.open`.

        The errors are raised by this call or by `async with`.
        """
        settings = _settings(directory, bundle, heads, config)
        return cls(settings, writable=writable, tenant=tenant)

    async def merge(self) -> None:
        """Merges the writes of every shard into its files. Errors are those of `Index.merge`."""
        await self._run_while_open(self._open_services().merge())

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise UnavailableError("the index is open already: call `open` for another one")
        self._is_entered = True
        opening = asyncio.create_task(self._open())
        try:
            await asyncio.shield(opening)
        except BaseException:
            opening.cancel()
            await run_uncancelled(self._close(opening))
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """Cancels the running calls, which raise UnavailableError, and releases the directory."""
        self._embedded = None
        await run_uncancelled(self._close(*self._calls))

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        """Runs the call that a method of `AsyncClientApi` has prepared, and returns its result."""
        services, metadata = self._open_services(), request_id_metadata(request_id)
        limited = limited_timeout(timeout)
        set_tenant(call.request, self._tenant)
        return await self._run_while_open(services.call(call, limited, metadata))

    async def _open(self) -> None:
        self._embedded = await self._stack.enter_async_context(
            open_embedded(self._settings, CollectorRegistry(), writable=self._writable)
        )

    async def _close(self, *running: asyncio.Task[Any]) -> None:
        """Cancels the `running` tasks, waits until they have ended, and closes the index."""
        for task in running:
            if not task.cancelling():
                task.cancel()
        if running:
            await asyncio.wait(running)
        self._embedded = None
        await self._stack.aclose()
        self._is_entered = False
        gc.collect()  # reference cycles would keep the files of shards open until later

    async def _run_while_open(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Returns the result of `work`; raises UnavailableError if the index is closed before."""
        # a task has its own log context: the request id must not appear in the program's own logs
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._embedded is not None or (caller is not None and caller.cancelling()):
                raise
        raise UnavailableError("the index was closed during the call: open it again")

    def _open_services(self) -> EmbeddedServices:
        """Returns the services; raises UnavailableError if the index is not open."""
        if self._embedded is None:
            raise UnavailableError("the index is not open: use it within its `with` block")
        return self._embedded


class Index(ClientApi):
    """An open index, for synchronous programs. Threads may share it; a `with` block closes it.

    A program that ends without closing the index loses no writes: they are durable when `put`
    returns.
    """

    def __init__(self, index: AsyncIndex) -> None:
        """Opens `index` on an event loop in a new thread. Programs call `open` instead."""
        self._index, self._process = index, os.getpid()
        self._loop = LoopThread("index", index.__aexit__)
        atexit.register(self._close_at_exit)
        try:
            self._loop.run(index.__aenter__())
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        bundle: str | Path | None = None,
        heads: str = "",
        writable: bool = False,
        config: str | Path | None = None,
        tenant: str = "",
    ) -> Self:
        """Opens an index: loads and verifies all its shards.

        Args:
            directory: directory of the index, written by `winnow index build`.
            bundle: directory of the bundle of models; None for the default bundle.
            heads: head store, a directory or URL, for `predict` and for heads of questions; empty
                for none.
            writable: whether `put`, `delete` and `merge` work. A shard that has taken writes is
                locked: no other program or node can load it while it is open with `writable=True`.
                Any number of processes may open an index for reading.
            config: TOML file with further settings, in the tables 'front' and 'node'.
            tenant: tenant of all calls, in an index with tenants.

        Raises:
            SettingsError: a setting is wrong.
            ArtefactError: the directory has no index, or none of its shards can be loaded.

        """
        return cls(
            AsyncIndex.open(
                directory,
                bundle=bundle,
                heads=heads,
                writable=writable,
                config=config,
                tenant=tenant,
            )
        )

    def merge(self) -> None:
        """Merges the writes of every shard into its files. Questions are faster afterwards.

        Raises:
            NotWritableError: the index was opened without `writable=True`.
            WinnowError: a merge failed. The index keeps answering from its old files and writes.

        """
        self._wait(self._index.merge())

    def close(self) -> None:
        """Cancels the running calls and releases the directory.

        Each further call waits until that is done. If Ctrl-C interrupts the wait, the index closes
        meanwhile; a further call or the end of the program waits for it.
        """
        if self._process != os.getpid():
            return
        self._loop.close()
        atexit.unregister(self._close_at_exit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        return self._wait(self._index.run(call, timeout, request_id))

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs `work` on the event loop of the index, and returns its result."""
        if self._process != os.getpid():
            work.close()
            raise UnavailableError(
                "the index was opened before this process was forked, and a forked process lacks "
                "its threads: open the index in each process, such as in each worker of a server"
            )
        return self._loop.run(work)

    def _close_at_exit(self) -> None:
        """Closes the index at the end of the program. Running threads would abort the process."""
        with contextlib.suppress(RuntimeError):  # executors no longer accept work
            self.close()


def _settings(
    directory: str | Path, bundle: str | Path | None, heads: str, config: str | Path | None
) -> StandaloneSettings:
    # absolute, because the program may change its working directory while the index is open
    flags = {
        "index": Path(directory).absolute(),
        "bundle": Path(bundle or default_bundle()).absolute(),
        "heads": absolute_url(heads),
    }
    return StandaloneSettings.embedded(flags, Path(config).absolute() if config else None)
