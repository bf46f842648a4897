"""Adds the cluster service to the server of a front."""

import time
from functools import partial

from winnow.packaged import running_version
from winnow.stateless.composing.front import Front
from winnow.stateless.heads.encoder_groups import EncoderGroups
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.status import cluster_operations
from winnow.stateless.indexes.front_index import ChooseIndex, state_of_index
from winnow.stateless.status.core import FrontVersion, StatusCore
from winnow.stateless.status.servicer import ClusterServicer
from winnow.v1 import cluster_pb2_grpc


def serve_status(front: Front, choose: ChooseIndex | None, groups: EncoderGroups) -> StatusCore:
    """Adds the service that reports the state of the front, its clusters and its encoder groups.

    `choose` returns the index of a name; None if the front has no index.
    """
    manifest = front.bundle.manifest
    version = FrontVersion(running_version(), manifest.name, manifest.fingerprint)
    core = StatusCore(
        version,
        front.work,
        cluster=partial(state_of_index, choose),
        groups=lambda: [group.info() for group in groups.all()],
        clock=time.monotonic,
    )
    limits = OperationLimits(front.settings.default_deadline)
    front.http_operations.extend(cluster_operations(core, limits))
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(ClusterServicer(core), front.services)
    return core
