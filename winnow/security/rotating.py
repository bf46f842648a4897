"""A channel whose certificates change while it is used.

gRPC takes the certificates of a channel when it is made. So a new one is made when they change:
new calls go there, and the old one is closed when its last call has ended.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import grpc
import grpc.aio

Open = Callable[[], grpc.aio.Channel]


class RotatingChannel(grpc.aio.Channel):
    """Stands for a channel; stubs are made on it as on any other."""

    def __init__(self, open_newest: Open, version: Callable[[], int]) -> None:
        """`version` tells by another number that channels are to be made anew."""
        self._open, self._newest = open_newest, version
        self._version = version()
        self._line = _Line(open_newest())
        self._older: set[_Line] = set()

    @property
    def line(self) -> "_Line":
        """What new calls go to."""
        if self._version != (newest := self._newest()):
            self._version, old, self._line = newest, self._line, _Line(self._open())
            self._older = {each for each in self._older if not each.closed} | {old}
            old.close_when_idle()
        return self._line

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """As `grpc.aio.Channel` has it, and so are the others."""
        return _Method(self, "unary_unary", arguments, named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "unary_stream", arguments, named)

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "stream_unary", arguments, named)

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        return _Method(self, "stream_stream", arguments, named)

    async def close(self, grace: float | None = None) -> None:
        """Ends the calls of all channels that there are."""
        for each in (self._line, *self._older):
            await each.close(grace)

    def get_state(self, try_to_connect: bool = False) -> Any:
        """Of what new calls go to."""
        return self.line.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: Any) -> None:
        """Of what new calls go to."""
        await self.line.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Waits until what new calls go to is connected."""
        await self.line.channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Method:
    """A method of a stub: made anew on each new channel, and not for each call."""

    def __init__(
        self, owner: RotatingChannel, kind: str, arguments: Any, named: dict[str, Any]
    ) -> None:
        self._owner, self._kind = owner, kind
        self._arguments, self._named = arguments, named
        self._line: _Line | None = None
        self._method: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        line = self._owner.line
        if line is not self._line:
            make = getattr(line.channel, self._kind)
            self._line, self._method = line, make(*self._arguments, **self._named)
        call = self._method(*arguments, **named)
        line.begin(call)
        return call


class _Line:
    """A channel, and how many calls it has in hand."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel, self.closed = channel, False
        self._calls, self._leaving = 0, False
        self._closing: asyncio.Task[None] | None = None

    def begin(self, call: Any) -> None:
        """A call has begun."""
        self._calls += 1
        call.add_done_callback(self._end)

    def close_when_idle(self) -> None:
        """No further calls come."""
        self._leaving = True
        self._look()

    async def close(self, grace: float | None = None) -> None:
        """Closes it now, unless that was done."""
        if not self.closed:
            self.closed = True
            await self.channel.close(grace)
        elif self._closing is not None:
            await self._closing

    def _end(self, _call: Any) -> None:
        self._calls -= 1
        self._look()

    def _look(self) -> None:
        if self._leaving and not self._calls and not self.closed:
            self.closed = True
            self._closing = asyncio.ensure_future(self.channel.close())
