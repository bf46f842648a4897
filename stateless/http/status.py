"""Serves `/v1/cluster`: calls the status core and converts its report."""

from winnow.convert import cluster as convert
from winnow.deadline import Deadline
from winnow.stateless.http.call import HttpOperation, OperationLimits
from winnow.stateless.http.rpc_operation import rpc_operation
from winnow.stateless.status.core import StatusCore
from winnow.v1 import cluster_pb2


def cluster_operations(core: StatusCore, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the HTTP operation that reports the state of the front and of its cluster."""

    async def show(
        message: cluster_pb2.GetClusterRequest, _deadline: Deadline, _client: str
    ) -> cluster_pb2.GetClusterResponse:
        return convert.report_to_message(core.show(message.index))

    return [
        rpc_operation(
            cluster_pb2.DESCRIPTOR.services_by_name["ClusterService"],
            "GetCluster",
            show,
            "/v1/cluster",
            "Shows the shards, their replicas, and the front's work in progress.",
            verb="GET",
            scope="admin",
            limits=limits,
            before_ready=True,
            of_all_tenants=True,
        )
    ]
