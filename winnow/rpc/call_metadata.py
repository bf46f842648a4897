"""The metadata of calls to other nodes: request id, trace, and client key."""

from winnow.rpc import client_key, request_id
from winnow.telemetry.tracing.span import current


def outgoing(client: str = "") -> tuple[tuple[str, str], ...]:
    """Metadata of a call; `client` is the key of the client."""
    return request_id.outgoing() + client_key.outgoing(client) + current().outgoing
