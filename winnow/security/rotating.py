"""A channel whose certificates change while it is used.

gRPC takes the certificates of a channel when it is created. So another channel is created when they
change: new calls use it, and the old one is closed when its last call has ended.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import grpc
import grpc.aio

Open = Callable[[], grpc.aio.Channel]


class RotatingChannel(grpc.aio.Channel):
    """Stands for the newest channel; stubs are created on it as on any other."""

    def __init__(self, open_newest: Open, version: Callable[[], int]) -> None:
        """A new number from `version` means that another channel is needed."""
        self._open, self._newest = open_newest, version
        self._version = version()
        self._current = _CountedChannel(open_newest())
        self._older: set[_CountedChannel] = set()

    @property
    def newest(self) -> "_CountedChannel":
        """The channel for new calls."""
        if self._version != (newest := self._newest()):
            self._version, old, self._current = newest, self._current, _CountedChannel(self._open())
            self._older = {each for each in self._older if not each.closed} | {old}
            old.close_when_idle()
        return self._current

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """As `grpc.aio.Channel` has it; the same holds for the other kinds."""
        return _Method(self, "unary_unary", arguments, named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "unary_stream", arguments, named)

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "stream_unary", arguments, named)

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "stream_stream", arguments, named)

    async def close(self, grace: float | None = None) -> None:
        """Ends the calls of all channels."""
        for each in (self._current, *self._older):
            await each.close(grace)

    def get_state(self, try_to_connect: bool = False) -> Any:
        """The state of the channel for new calls."""
        return self.newest.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: Any) -> None:
        """Waits for a change of the channel for new calls."""
        await self.newest.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Waits until the channel for new calls is connected."""
        await self.newest.channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Method:
    """A method of a stub, created once for each channel, not for each call."""

    def __init__(
        self, owner: RotatingChannel, kind: str, arguments: Any, named: dict[str, Any]
    ) -> None:
        self._owner, self._kind = owner, kind
        self._arguments, self._named = arguments, named
        self._current: _CountedChannel | None = None
        self._method: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        line = self._owner.newest
        if line is not self._current:
            make = getattr(line.channel, self._kind)
            self._current, self._method = line, make(*self._arguments, **self._named)
        call = self._method(*arguments, **named)
        line.begin(call)
        return call


class _CountedChannel:
    """A channel and the number of its calls in hand."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel, self.closed = channel, False
        self._calls, self._leaving = 0, False
        self._closing: asyncio.Task[None] | None = None

    def begin(self, call: Any) -> None:
        """Counts a call until it ends."""
        self._calls += 1
        call.add_done_callback(self._end)

    def close_when_idle(self) -> None:
        """Closes the channel after its last call."""
        self._leaving = True
        self._close_if_idle()

    async def close(self, grace: float | None = None) -> None:
        """Closes the channel now, unless it is closed already."""
        if not self.closed:
            self.closed = True
            await self.channel.close(grace)
        elif self._closing is not None:
            await self._closing

    def _end(self, _call: Any) -> None:
        self._calls -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._leaving and not self._calls and not self.closed:
            self.closed = True
            self._closing = asyncio.ensure_future(self.channel.close())
