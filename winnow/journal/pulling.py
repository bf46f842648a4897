"""Pulls the messages of a JetStream stream in order, as the journal asks for them.

The client's own `fetch` waits for the requested number until its time is over; this passes on what
has arrived at once. Knows the protocol of pull consumers; does not know what messages say.
"""

import contextlib
import json
from collections.abc import AsyncGenerator, Iterable

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from winnow.errors import UnavailableError
from winnow.journal.journal import JournalEntry

_AT_ONCE = 256
"""Messages of a request; a message has some kilobytes, at most a megabyte."""
_BYTES = 8 * 1024 * 1024
"""Most bytes of the messages of a request."""
_HEARTBEAT = 1.0
"""Seconds between heartbeats of a server that has nothing new."""
_SILENCE = 3.0
"""Seconds without a heartbeat after which a server counts as dead."""
_EXPIRES = 30.0
"""Seconds after which the server drops a request."""
_FORGOTTEN = 60.0
"""Seconds after which the server drops an unused consumer."""
_NANOSECONDS = 1_000_000_000
_ALIVE = "100"
_NOTHING_MORE = ("404", "408", "409")
"""No messages, or no more for this request."""


async def messages(
    client: Client, streams: JetStreamContext, stream: str, after: int
) -> AsyncGenerator[list[Msg], None]:
    """Messages after a sequence number, as many as have arrived; none where there is nothing new.
    Raises UnavailableError if the server is silent, or has forgotten the consumer: begin again.
    Raises nats.errors.Error if the client or the server failed.
    """
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=_FORGOTTEN,
        mem_storage=True,
    )
    info = await streams.add_consumer(stream, config)
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{info.name}"
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    try:
        wanted = 0
        while True:
            if wanted <= 0:
                await client.publish(subject, _request(), reply=inbox)
                wanted = _AT_ONCE
            arrived = await _arrived(subscription)
            said = [_status(message) for message in arrived]
            found = [each for each, status in zip(arrived, said, strict=True) if not status]
            wanted = 0 if _is_over(said) else wanted - len(found)
            yield found
    except nats.errors.TimeoutError as error:
        raise UnavailableError("the server says nothing") from error
    finally:
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()


def _request() -> bytes:
    return json.dumps(
        {
            "batch": _AT_ONCE,
            "max_bytes": _BYTES,
            "expires": int(_EXPIRES * _NANOSECONDS),
            "idle_heartbeat": int(_HEARTBEAT * _NANOSECONDS),
        }
    ).encode()


async def _arrived(subscription: Subscription) -> list[Msg]:
    """The messages that have arrived; waits for the next one if there are none."""
    found: list[Msg] = []
    while not found or subscription.pending_msgs:
        try:
            found.append(await subscription.next_msg(_SILENCE))
        except nats.errors.TimeoutError:
            # a process that stood still for so long finds time-out and messages at once
            if not subscription.pending_msgs:
                raise
    return found


def _status(message: Msg) -> str:
    """The status that the server sends instead of a message; empty for a message."""
    return (message.headers or {}).get("Status", "") if not message.data else ""


def _is_over(said: Iterable[str]) -> bool:
    """Whether the request is over. Raises UnavailableError if the server did not take it."""
    statuses = {status for status in said if status not in ("", _ALIVE)}
    if statuses - set(_NOTHING_MORE):
        raise UnavailableError(f"the server answers {', '.join(statuses)}: it is restarting")
    return bool(statuses)


def following(after: int, arrived: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """The entries after a place; those that were delivered before are left out.

    Raises UnavailableError if one in between was lost.
    """
    found: list[JournalEntry] = []
    for entry in arrived:
        if entry.place > after + 1:
            raise UnavailableError(
                f"entry {after + 1} of the journal did not arrive, and {entry.place} did"
            )
        if entry.place == after + 1:
            found.append(entry)
            after = entry.place
    return tuple(found)
