"""Adds the cluster service to the server of a front."""

import time

from winnow.domain.cluster_state import ClusterState
from winnow.packaged import running_version
from winnow.stateless.cluster.status import ClusterReporter
from winnow.stateless.composing.cluster import OpenCluster
from winnow.stateless.composing.front import Front
from winnow.stateless.heads.encoder_groups import EncoderGroups
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.status import cluster_operations
from winnow.stateless.status.core import FrontVersion, StatusCore
from winnow.stateless.status.servicer import ClusterServicer
from winnow.v1 import cluster_pb2_grpc


def serve_status(front: Front, cluster: OpenCluster | None, groups: EncoderGroups) -> StatusCore:
    """Adds the service that reports the state of the front, its cluster and its encoder groups."""
    manifest = front.bundle.manifest
    version = FrontVersion(running_version(), manifest.name, manifest.fingerprint)
    shown = ClusterReporter(cluster.builder, cluster.nodes).report if cluster else ClusterState
    core = StatusCore(
        version,
        front.work,
        cluster=shown,
        groups=lambda: [group.info() for group in groups.all()],
        clock=time.monotonic,
    )
    limits = OperationLimits(front.settings.default_deadline)
    front.http_operations.extend(cluster_operations(core, limits))
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(ClusterServicer(core), front.services)
    return core
