"""Heads on several head servers, each where rendezvous hashing puts it.

`winnow.policy.head_servers` says which server is asked for what, `asking` when a second one is.
Servers come and go: a call in hand keeps the server that it was sent to.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Protocol

import structlog

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.errors import UnavailableError, WinnowError
from winnow.heads.asking import Asking, Sent
from winnow.heads.heads import States
from winnow.policy.head_servers import HeadServerCall, HeadServers

_log = structlog.get_logger("winnow.heads")


class HeadServer(Protocol):
    """A server of heads: `winnow.heads.remote.RemoteHeads`."""

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads; raises WinnowError if the call fails as a whole."""

    async def close(self) -> None:
        """Ends what it began."""


class PlacedHeads:
    """The heads of an encoder group on head servers, as `Heads`."""

    def __init__(self, reach: Callable[[str], HeadServer], servers: HeadServers) -> None:
        """`reach` makes what calls the server at an address. It is closed here."""
        self._reach, self._policy = reach, servers
        self._servers: dict[str, HeadServer] = {}
        self._in_hand: dict[asyncio.Task[list[Applied]], HeadServer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def update(self, addresses: Collection[str]) -> None:
        """From now on heads are asked for at these servers. Calls to others end by themselves."""
        gone = [self._servers.pop(each) for each in [*self._servers] if each not in addresses]
        self._policy.update(addresses)
        for address in addresses:
            if address not in self._servers:
                self._servers[address] = self._reach(address)
        for server in gone:
            self._close_if_idle(server)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies each head at its server, or at its next one."""
        asking = Asking(
            self._policy, lambda call: self._send(call, states, deadline, client), deadline
        )
        try:
            return await asking.run(head_ids)
        finally:
            asking.end()

    async def close(self) -> None:
        """Closes all servers; calls in hand are cancelled."""
        for task in self._in_hand:
            task.cancel()
        self.update(())
        await asyncio.gather(*self._in_hand, *self._closing, return_exceptions=True)
        await asyncio.gather(*self._closing)

    def _send(self, call: HeadServerCall, states: States, deadline: Deadline, client: str) -> Sent:
        server = self._servers[call.server]
        task = asyncio.create_task(_reply(server, call, states, deadline, client))
        self._in_hand[task] = server
        task.add_done_callback(partial(self._ended, call))
        return Sent(call, task)

    def _ended(self, call: HeadServerCall, task: asyncio.Task[list[Applied]]) -> None:
        """Counts a call out, however it ended; also one that was cancelled before it began."""
        server, was_out = self._in_hand.pop(task), self._policy.is_left_out(call.server)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._policy.failed(call, None)
        elif error is not None:
            self._policy.failed(call, error if isinstance(error, WinnowError) else WinnowError())
        else:
            self._policy.answered(call)
        is_out = self._policy.is_left_out(call.server)
        if is_out and not was_out:
            said = {"error": str(error)} if error else {}
            _log.warning("a head server is left out for a while", server=call.server, **said)
        elif was_out and not is_out:
            _log.info("a head server is back", server=call.server)
        if server not in self._servers.values():
            self._close_if_idle(server)

    def _close_if_idle(self, server: HeadServer) -> None:
        if server not in self._in_hand.values():
            closing = asyncio.get_running_loop().create_task(server.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


async def _reply(
    server: HeadServer, call: HeadServerCall, states: States, deadline: Deadline, client: str
) -> list[Applied]:
    try:
        return await server.call(states, call.heads, deadline, client)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        # gRPC cancels the calls of a channel that is closed
        cancelled = UnavailableError(f"{call.server}: the call was cancelled")
        raise cancelled.with_public("the call to a head server was cancelled") from None
