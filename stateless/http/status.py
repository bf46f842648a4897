"""Serves `/v1/cluster`: calls the status core and converts its report."""

from winnow.convert import cluster as convert
from winnow.stateless.http.call import HttpOperation, NewDeadline
from winnow.stateless.status.core import StatusCore
from winnow.v1 import cluster_pb2


def cluster_operations(core: StatusCore, default_deadline: float) -> list[HttpOperation]:
    """Returns the HTTP operation that reports the state of the front and of its cluster.

    `default_deadline` is the deadline in seconds of a call whose caller sets none.
    """

    async def show(
        _message: cluster_pb2.GetClusterRequest, _new_deadline: NewDeadline, _client: str
    ) -> cluster_pb2.GetClusterResponse:
        return convert.report_to_message(core.show())

    return [
        HttpOperation(
            name="GetCluster",
            verb="GET",
            path="/v1/cluster",
            about="Shows the shards, their replicas, and the front's work in progress.",
            scope="admin",
            run=show,
            request=cluster_pb2.GetClusterRequest,
            response=cluster_pb2.GetClusterResponse,
            default_deadline=default_deadline,
            before_ready=True,
        )
    ]
