"""The metadata of calls to other nodes: request id, client key and trace."""

from winnow.rpc import client_key, request_id
from winnow.telemetry.tracing.span import current


def build(client: str = "") -> tuple[tuple[str, str], ...]:
    """Builds the metadata of a call; `client` is the client key on whose behalf it is made."""
    return (
        request_id.outgoing_metadata()
        + client_key.outgoing_metadata(client)
        + current().outgoing_metadata
    )
