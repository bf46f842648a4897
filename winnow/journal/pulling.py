"""Pulls the messages of a JetStream stream in order, by the protocol of pull consumers.

The client's own `fetch` waits until all requested messages have arrived or time is over. This
module yields messages as soon as they arrive.
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

_BATCH_MESSAGES = 256
"""Limit of messages of one request. A message has some kilobytes, at most a megabyte."""
_BATCH_BYTES = 8 * 1024 * 1024
"""Limit of bytes of one request."""
_HEARTBEAT = 1.0
"""Seconds between heartbeats of a server without new messages."""
_HEARTBEAT_TIMEOUT = 3.0
"""Seconds without a heartbeat after which a server counts as dead."""
_REQUEST_SECONDS = 30.0
"""Seconds after which the server drops a request."""
_CONSUMER_SECONDS = 60.0
"""Seconds after which the server drops an unused consumer."""
_NANOSECONDS = 1_000_000_000
_STATUS_HEARTBEAT = "100"
_STATUSES_REQUEST_ENDED = ("404", "408", "409")
"""Statuses with which the server ends a request."""


async def pull_messages(
    client: Client, streams: JetStreamContext, stream: str, after: int
) -> AsyncGenerator[list[Msg], None]:
    """Yields lists of the messages after a sequence number as they arrive; lists may be empty.

    Raises UnavailableError if the server is silent or has dropped the consumer: call it again then.
    Raises nats.errors.Error if the client or the server fails.
    """
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=AckPolicy.NONE,
        inactive_threshold=_CONSUMER_SECONDS,
        mem_storage=True,
    )
    info = await streams.add_consumer(stream, config)
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{info.name}"
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    try:
        remaining = 0
        while True:
            if remaining <= 0:
                await client.publish(subject, _request(), reply=inbox)
                remaining = _BATCH_MESSAGES
            received = await _receive(subscription)
            statuses = [_status(message) for message in received]
            entries = [each for each, status in zip(received, statuses, strict=True) if not status]
            remaining = 0 if _has_ended(statuses) else remaining - len(entries)
            yield entries
    except nats.errors.TimeoutError as error:
        raise UnavailableError("the server sends no heartbeats") from error
    finally:
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()


def _request() -> bytes:
    return json.dumps(
        {
            "batch": _BATCH_MESSAGES,
            "max_bytes": _BATCH_BYTES,
            "expires": int(_REQUEST_SECONDS * _NANOSECONDS),
            "idle_heartbeat": int(_HEARTBEAT * _NANOSECONDS),
        }
    ).encode()


async def _receive(subscription: Subscription) -> list[Msg]:
    """Returns the messages that have arrived; waits if there are none."""
    received: list[Msg] = []
    while not received or subscription.pending_msgs:
        try:
            received.append(await subscription.next_msg(_HEARTBEAT_TIMEOUT))
        except nats.errors.TimeoutError:
            # after a pause of this process, timeout and messages come together
            if not subscription.pending_msgs:
                raise
    return received


def _status(message: Msg) -> str:
    """Returns the status code that the server sent instead of an entry; empty for an entry."""
    return (message.headers or {}).get("Status", "") if not message.data else ""


def _has_ended(statuses: Iterable[str]) -> bool:
    """Returns whether the request has ended. Raises UnavailableError for an unexpected status."""
    ending = {status for status in statuses if status not in ("", _STATUS_HEARTBEAT)}
    if ending - set(_STATUSES_REQUEST_ENDED):
        raise UnavailableError(f"the server sent status {', '.join(ending)}: it is restarting")
    return bool(ending)


def new_entries(after: int, received: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Returns the entries after a sequence number, without repeated ones.

    Raises UnavailableError if an entry is missing.
    """
    entries: list[JournalEntry] = []
    for entry in received:
        if entry.sequence > after + 1:
            raise UnavailableError(
                f"the journal sent entry {entry.sequence} without entry {after + 1}"
            )
        if entry.sequence == after + 1:
            entries.append(entry)
            after = entry.sequence
    return tuple(entries)
