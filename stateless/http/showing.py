"""`/v1/cluster`: calls the showing core and converts its reply."""

from winnow.convert import cluster as convert
from winnow.stateless.http.call import HttpOperation, NewDeadline
from winnow.stateless.showing.core import ShowingCore
from winnow.v1 import cluster_pb2


def cluster_operations(core: ShowingCore, seconds: float) -> list[HttpOperation]:
    """The operation of the showing core; `seconds`: longest time of a call."""

    async def show(
        _message: cluster_pb2.GetClusterRequest, _new_deadline: NewDeadline, _client: str
    ) -> cluster_pb2.GetClusterResponse:
        return convert.shown_to_message(core.show())

    return [
        HttpOperation(
            name="GetCluster",
            verb="GET",
            path="/v1/cluster",
            about="Shows the shards, their replicas, and what the front has in hand.",
            scope="admin",
            run=show,
            request=cluster_pb2.GetClusterRequest,
            response=cluster_pb2.GetClusterResponse,
            seconds=seconds,
            early=True,
        )
    ]
