"""Publishes an entry to a JetStream stream, and retries until it is acknowledged or expired.

The error of a failure says whether the journal may have stored the entry.
"""

import asyncio

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext

from winnow.deadline import Deadline
from winnow.journal.journal import PublishedEntry

_ATTEMPT_SECONDS = 1.0
"""Seconds after which an unacknowledged entry is sent again."""
_RETRY_PAUSE = 0.05
"""Seconds until an entry that the server refused is sent again."""
_NOT_STORED = (
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.APIError,
)
"""Errors after which an entry is not stored: it was not sent, or the server refused it."""


async def publish(
    streams: JetStreamContext,
    stream: str,
    subject: str,
    content: bytes,
    headers: dict[str, str],
    deadline: Deadline,
) -> PublishedEntry:
    """Publishes an entry; returns once the server has acknowledged it.

    Raises nats.errors.Error immediately if the entry is certainly not stored. Raises TimeoutError
    at the deadline if the entry may still arrive; an entry that arrives later has expired.
    """
    is_sent = False
    while True:
        try:
            acknowledgement = await streams.publish(
                subject,
                content,
                timeout=max(min(_ATTEMPT_SECONDS, deadline.left()), 0),
                stream=stream,
                headers=dict(headers),
            )
            return PublishedEntry(int(acknowledgement.seq), bool(acknowledgement.duplicate))
        except _NOT_STORED:
            if not is_sent:
                raise
        except nats.errors.TimeoutError:
            is_sent = True
        if deadline.expired():
            raise TimeoutError("it did not acknowledge an entry in time")
        await asyncio.sleep(max(min(_RETRY_PAUSE, deadline.left()), 0))
