"""What travels with every call to another node: the request's id, its trace, whose turn it is."""

from winnow.rpc import client_key, request_id
from winnow.telemetry.tracing.span import current


def outgoing(client: str = "") -> tuple[tuple[str, str], ...]:
    """Metadata of a call; `client` is the key of whoever asks."""
    return request_id.outgoing() + client_key.outgoing(client) + current().outgoing
