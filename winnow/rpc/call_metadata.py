"""The metadata of calls to other nodes: request id, client key, index and trace."""

from winnow.rpc import client_key, index_header, request_id
from winnow.telemetry.tracing.span import current


def build(client: str = "", index_id: str = "") -> tuple[tuple[str, str], ...]:
    """Builds the metadata of a call.

    `client` is the client key on whose behalf it is made. `index_id` is the id of a named index;
    empty for the default index of the node.
    """
    return (
        request_id.outgoing_metadata()
        + client_key.outgoing_metadata(client)
        + index_header.outgoing_metadata(index_id)
        + current().outgoing_metadata
    )
