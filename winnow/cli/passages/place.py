"""Where a command finds the passages: a front node, or an index in this process."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import typer

from winnow import signals
from winnow.client import AsyncClient, Credentials
from winnow.client.aio import AsyncClientApi

Result = TypeVar("Result")


def run_at(
    address: str,
    index: Path | None,
    credentials: Credentials | None,
    work: Callable[[AsyncClientApi], Awaitable[Result]],
    *,
    on: str = "",
    tenant: str = "",
) -> Result:
    """Runs `work` on the index in a directory, or without one on the front node at an address.

    `on` is the name of the index on the cluster; empty for the default index. `tenant` is the
    tenant of the passages; empty if the key decides it, or the index has no tenants.
    """
    if index is not None and on:
        raise typer.BadParameter("a directory holds one index: omit --on", param_hint="--on")

    async def connected() -> Result:
        if index is None:
            async with AsyncClient(
                address, credentials=credentials, index=on, tenant=tenant
            ) as client:
                return await work(client)
        with signals.importing():
            from winnow import AsyncIndex  # noqa: PLC0415 (not for a front node)

        async with AsyncIndex.open(index, tenant=tenant) as opened:
            return await work(opened)

    return signals.run(connected())
