"""What an agent's server calls: a front node, an index in this process, or a folder of documents.

An agent's program gives up a server that does not start within seconds. So the server starts at
once, and calls wait until the index is open.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, Self, TypeVar

from winnow import signals
from winnow.cli.exits import print_error
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.client import AsyncClient, Credentials
from winnow.client.aio import AsyncClientApi
from winnow.client.calls import Call
from winnow.deadline import Deadline
from winnow.errors import UnavailableError, WinnowError

Result = TypeVar("Result")
_POLL_SECONDS = 0.2
_LEAST_SECONDS = 0.001
"""Timeout of a call for which the index was opened at the last moment."""


class AgentSource(Protocol):
    """Opens an index for an agent."""

    def open(self) -> AbstractAsyncContextManager[AsyncClientApi]:
        """Opens the index, and closes it at the end of the context. Raises WinnowError."""


class FrontSource:
    """A front node."""

    def __init__(
        self,
        address: str,
        credentials: Credentials | None,
        index: str = "",
        tenant: str = "",
    ) -> None:
        """`index` is the name of the index; empty for the default index.

        `tenant` is the tenant of all calls; empty if the key decides it.
        """
        self._client = AsyncClient(address, credentials=credentials, index=index, tenant=tenant)

    def open(self) -> AbstractAsyncContextManager[AsyncClientApi]:
        """Opens a client, which connects at the first call."""
        return self._client


class IndexSource:
    """An index in this process."""

    def __init__(self, directory: Path, tenant: str = "") -> None:
        """`tenant` is the tenant of all calls; empty for an index without tenants."""
        self._directory, self._tenant = directory, tenant

    def open(self) -> AbstractAsyncContextManager[AsyncClientApi]:
        """Opens the index."""
        with signals.importing():
            from winnow import AsyncIndex  # noqa: PLC0415 (not for a front node)

        return AsyncIndex.open(self._directory, tenant=self._tenant)


class DocumentsSource:
    """A folder of documents, which `winnow up` indexes and serves in another process."""

    def __init__(self, folder: Path, credentials: Credentials | None) -> None:
        """`credentials` are needed if settings of the front node require some."""
        self._folder, self._credentials = folder, credentials

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncClientApi]:
        """Starts the process, and waits until it serves. The first time it builds the index.

        Raises UnavailableError if the process ends.
        """
        address = f"127.0.0.1:{free_ports(1)[0]}"
        command = ["up", "--documents", str(self._folder), "--listen", address]
        with Processes() as processes:
            processes.start("server", [*command, "--http-listen", ""], log=sys.stderr.buffer)
            async with AsyncClient(address, credentials=self._credentials) as client:
                while not await client.available():
                    code = processes.exit_codes().get("server")
                    if code is not None:
                        raise UnavailableError(
                            f"`winnow up --documents {self._folder}` ended with exit code {code}: "
                            "see the log of this server, or run that command and use "
                            "`winnow mcp --address`"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
                yield client


class ApiOfOpeningIndex(AsyncClientApi):
    """Runs calls on an index that is being opened. `async with` opens it in the background."""

    def __init__(self, source: AgentSource) -> None:
        self._source = source
        self._stack = contextlib.AsyncExitStack()
        self._opening: asyncio.Task[AsyncClientApi] | None = None

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        """Runs a call. The time that it waits for the index counts towards `timeout`.

        Raises UnavailableError if the index is not open by then, and the error of its opening.
        """
        assert self._opening is not None, "used within `async with`"
        deadline = Deadline.after(timeout)
        try:
            async with asyncio.timeout(timeout):
                api = await asyncio.shield(self._opening)
        except TimeoutError:
            raise UnavailableError(
                "the index is still being opened or built: try again in a minute"
            ) from None
        return await api.run(call, max(deadline.left(), _LEAST_SECONDS), request_id)

    async def _open(self) -> AsyncClientApi:
        try:
            return await self._stack.enter_async_context(self._source.open())
        except WinnowError as error:
            print_error(error)
            raise

    async def __aenter__(self) -> Self:
        self._opening = asyncio.create_task(self._open())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._opening is not None, "set by `__aenter__`"
        self._opening.cancel()
        await asyncio.gather(self._opening, return_exceptions=True)
        await self._stack.aclose()
