"""The channel of a client for threads, made anew when its certificates change."""

import threading
from collections.abc import Callable

import grpc
from grpc_health.v1 import health_pb2_grpc

from winnow.v1 import answer_pb2_grpc, feed_pb2_grpc, head_pb2_grpc


class Stubs:
    """What is called on a channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.answers = answer_pb2_grpc.AnswerServiceStub(channel)
        self.heads = head_pb2_grpc.HeadServiceStub(channel)
        self.feed = feed_pb2_grpc.FeedServiceStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)


class Connection:
    """The stubs that new calls are made on."""

    def __init__(self, open_newest: Callable[[], grpc.Channel], edition: Callable[[], int]) -> None:
        """`edition` tells by another number that the channel is to be made anew."""
        self._open, self._newest = open_newest, edition
        self._lock = threading.Lock()
        self._edition = edition()
        self._stubs = Stubs(open_newest())
        self._before: Stubs | None = None
        """With calls that began before the last change. A channel without calls has no connection
        for long, so it need not be closed sooner than the one after it.
        """

    @property
    def stubs(self) -> Stubs:
        """Of the newest channel."""
        if self._newest() != self._edition:
            self._renew()
        return self._stubs

    def close(self) -> None:
        """Ends all calls."""
        with self._lock:
            for each in filter(None, (self._stubs, self._before)):
                each.channel.close()

    def _renew(self) -> None:
        with self._lock:
            if (newest := self._newest()) == self._edition:
                return  # another thread was quicker
            if self._before is not None:
                self._before.channel.close()
            self._before, self._stubs = self._stubs, Stubs(self._open())
            self._edition = newest
