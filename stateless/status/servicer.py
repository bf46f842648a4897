"""Serves `winnow.v1.ClusterService`: calls the status core and converts its report."""

from typing import Any

from winnow.convert import cluster as convert
from winnow.stateless.status.core import StatusCore
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

SERVICE = "winnow.v1.ClusterService"


class ClusterServicer(cluster_pb2_grpc.ClusterServiceServicer):
    """Serves the status core over gRPC."""

    def __init__(self, core: StatusCore) -> None:
        self._core = core

    async def GetCluster(  # noqa: N802
        self, request: cluster_pb2.GetClusterRequest, context: Any
    ) -> cluster_pb2.GetClusterResponse:
        return convert.report_to_message(self._core.show(request.index))
