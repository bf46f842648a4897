"""A gRPC channel whose certificates may change while it is used.

gRPC reads certificates only when a channel is created. So when they change, a new channel is opened
for new calls. The old channel is closed when its last call has ended.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import grpc
import grpc.aio


class RotatingChannel(grpc.aio.Channel):
    """A channel that sends each call on the newest inner channel."""

    def __init__(
        self, open_channel: Callable[[], grpc.aio.Channel], read_version: Callable[[], int]
    ) -> None:
        """Opens an inner channel now, and another when `read_version` returns a new number."""
        self._open_channel, self._read_version = open_channel, read_version
        self._version = read_version()
        self._current = _CountedChannel(open_channel())
        self._retired: set[_CountedChannel] = set()

    @property
    def newest(self) -> "_CountedChannel":
        """The newest inner channel, for new calls."""
        if self._version != (version := self._read_version()):
            old, self._current = self._current, _CountedChannel(self._open_channel())
            self._version = version
            self._retired = {each for each in self._retired if not each.closed} | {old}
            old.close_when_idle()
        return self._current

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Creates a callable for a method, like the method of `grpc.aio.Channel`."""
        return _RotatingMethod(self, "unary_unary", arguments, named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        return _RotatingMethod(self, "unary_stream", arguments, named)

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        return _RotatingMethod(self, "stream_unary", arguments, named)

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        return _RotatingMethod(self, "stream_stream", arguments, named)

    async def close(self, grace: float | None = None) -> None:
        """Closes all inner channels, which ends their calls after `grace` seconds."""
        for each in (self._current, *self._retired):
            await each.close(grace)

    def get_state(self, try_to_connect: bool = False) -> Any:
        """The connectivity state of the newest channel."""
        return self.newest.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: Any) -> None:
        """Waits until the state of the newest channel changes."""
        await self.newest.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Waits until the newest channel is connected."""
        await self.newest.channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _RotatingMethod:
    """A callable of a stub. Creates the gRPC callable behind it once per inner channel."""

    def __init__(
        self, channel: RotatingChannel, kind: str, arguments: Any, named: dict[str, Any]
    ) -> None:
        self._channel, self._kind = channel, kind
        self._arguments, self._named = arguments, named
        self._current: _CountedChannel | None = None
        self._method: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        newest = self._channel.newest
        if newest is not self._current:
            make = getattr(newest.channel, self._kind)
            self._current, self._method = newest, make(*self._arguments, **self._named)
        call = self._method(*arguments, **named)
        newest.count(call)
        return call


class _CountedChannel:
    """An inner channel that counts its running calls, so that it can close after the last one."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel, self.closed = channel, False
        self._calls, self._retired = 0, False
        self._closing: asyncio.Task[None] | None = None

    def count(self, call: Any) -> None:
        """Counts a call until it ends."""
        self._calls += 1
        call.add_done_callback(self._uncount)

    def close_when_idle(self) -> None:
        """Closes the channel after its last call."""
        self._retired = True
        self._close_if_idle()

    async def close(self, grace: float | None = None) -> None:
        """Closes the channel now, unless it is closed already."""
        if not self.closed:
            self.closed = True
            await self.channel.close(grace)
        elif self._closing is not None:
            await self._closing

    def _uncount(self, _call: Any) -> None:
        self._calls -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._retired and not self._calls and not self.closed:
            self.closed = True
            self._closing = asyncio.ensure_future(self.channel.close())
