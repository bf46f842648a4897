"""Clients for components of a framework, which are copied, pickled and used from any thread."""

import asyncio
import os
import threading
from functools import partial
from typing import Any

from winnow.address import DEFAULT_ADDRESS
from winnow.client.aio import AsyncClient
from winnow.client.channels import check_address
from winnow.client.client import Client
from winnow.client.credentials import Credentials

TOKEN_VARIABLE = "WINNOW_TOKEN"  # noqa: S105 (a name)
"""Environment variable with the token of components that are given none."""


class LazyClients:
    """Opens the clients of a front node on first use: one a process, and one an event loop.

    Threads may share an instance. A copy, also a pickled one, opens its own clients.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        credentials: Credentials | None = None,
        timeout: float | None = None,
        *,
        index: str = "",
        tenant: str = "",
    ) -> None:
        """Opens nothing, and reads no files.

        `timeout` is in seconds; None for the default of each call. `index` is the name of the
        index of all calls; empty for the default index. `tenant` is the tenant of all calls; empty
        if the key decides it, or the index has no tenants.

        Raises InvalidRequestError if the address is invalid, or a token would be sent to another
        machine in plain text.
        """
        check_address(address)
        self._timeout, self._index, self._tenant = timeout, index, tenant
        self._address, self._credentials = address, credentials or Credentials()
        self._credentials.check_address(address)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._client: Client | None = None
        self._async_clients: dict[asyncio.AbstractEventLoop, AsyncClient] = {}

    @property
    def client(self) -> Client:
        """The blocking client. Raises InvalidRequestError if a file cannot be used."""
        with self._lock:
            self._forget_parent()
            if self._client is None:
                self._client = Client(
                    self._address,
                    credentials=self._credentials,
                    index=self._index,
                    tenant=self._tenant,
                )
            return self._client

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop. Raises InvalidRequestError as `client`."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._forget_parent()
            for ended in [each for each in self._async_clients if each.is_closed()]:
                del self._async_clients[ended]
            if loop not in self._async_clients:
                self._async_clients[loop] = AsyncClient(
                    self._address,
                    credentials=self._credentials,
                    index=self._index,
                    tenant=self._tenant,
                )
            return self._async_clients[loop]

    @property
    def call_options(self) -> dict[str, Any]:
        """Arguments of every call: the timeout, if there is one."""
        return {} if self._timeout is None else {"timeout": self._timeout}

    def close(self) -> None:
        """Closes the blocking client, and cancels its calls. The next use opens another one."""
        with self._lock:
            closing, self._client = self._client, None
        if closing is not None:
            closing.close()

    async def close_async(self) -> None:
        """Closes the client of the running event loop, as `close`."""
        with self._lock:
            closing = self._async_clients.pop(asyncio.get_running_loop(), None)
        if closing is not None:
            await closing.close()

    def _forget_parent(self) -> None:
        """Leaves clients of the parent process alone: gRPC's channels do not survive a fork."""
        if self._process != os.getpid():
            self._process, self._client = os.getpid(), None
            self._async_clients = {}

    def __reduce__(self) -> tuple[Any, ...]:
        opened = partial(LazyClients, index=self._index, tenant=self._tenant)
        return opened, (self._address, self._credentials, self._timeout)
