"""Publishing one entry to a JetStream stream, until it is acknowledged or given up.

Knows which failures leave it open whether the entry was sent; does not know what an entry says.
"""

import asyncio

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext

from winnow.deadline import Deadline

_TRY = 1.0
"""Seconds after which an entry that was not acknowledged is sent again."""
_PAUSE = 0.05
"""Seconds until it is sent again where the server refused it at once."""
_NOT_STORED = (
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.js.errors.NoStreamResponseError,
    nats.js.errors.APIError,
)
"""Failures of an entry that was not sent, or that the server refused."""


async def publish(
    streams: JetStreamContext,
    stream: str,
    subject: str,
    content: bytes,
    headers: dict[str, str],
    until: Deadline,
) -> int:
    """Publishes an entry; returns its place once the server has acknowledged it. Raises
    nats.errors.Error if the entry was certainly not stored; raised at once. Raises TimeoutError if
    it may be on its way; raised at the end of `until`, when it has expired.
    """
    is_sent = False
    while True:
        try:
            acknowledged = await streams.publish(
                subject,
                content,
                timeout=max(min(_TRY, until.left()), 0),
                stream=stream,
                headers=dict(headers),
            )
            return int(acknowledged.seq)
        except _NOT_STORED:
            if not is_sent:
                raise
        except nats.errors.TimeoutError:
            is_sent = True
        if until.expired():
            raise TimeoutError("it did not acknowledge an entry in time")
        await asyncio.sleep(max(min(_PAUSE, until.left()), 0))
