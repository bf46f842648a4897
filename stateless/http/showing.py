"""`/v1/cluster`: call, convert."""

from winnow.convert import cluster as convert
from winnow.stateless.http.call import HttpOperation, Until
from winnow.stateless.showing.core import ShowingCore
from winnow.v1 import cluster_pb2


def showing_calls(core: ShowingCore, seconds: float) -> list[HttpOperation]:
    """The showing core behind HTTP; `seconds`: that a look may take."""

    async def show(
        _message: cluster_pb2.GetClusterRequest, _until: Until, _client: str
    ) -> cluster_pb2.GetClusterResponse:
        return convert.shown_to_message(core.show())

    return [
        HttpOperation(
            "GetCluster",
            "GET",
            "/v1/cluster",
            "Shows the shards, their replicas, and what the front has in hand.",
            "admin",
            show,
            cluster_pb2.GetClusterRequest,
            cluster_pb2.GetClusterResponse,
            seconds,
            early=True,
        )
    ]
