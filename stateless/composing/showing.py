"""Has the server of a front show its cluster."""

import time

from stateless.cluster.showing import Showing
from stateless.composing.cluster import OpenCluster
from stateless.composing.front import Front
from stateless.heads.rings import Rings
from stateless.http.showing import showing_calls
from stateless.showing.core import Names, ShowingCore
from stateless.showing.servicer import ClusterServicer
from winnow.domain.cluster_state import ClusterState
from winnow.packaged import running_version
from winnow.v1 import cluster_pb2_grpc


def serve_showing(front: Front, cluster: OpenCluster | None, rings: Rings) -> ShowingCore:
    """Has the server show the front, its cluster if it has one, and its rings."""
    manifest = front.bundle.manifest
    names = Names(running_version(), manifest.name, manifest.fingerprint)
    shown = Showing(cluster.formation, cluster.nodes).show if cluster else ClusterState
    core = ShowingCore(
        names,
        front.work,
        shown,
        lambda: [ring.info() for ring in rings.all()],
        time.monotonic,
    )
    front.calls.extend(showing_calls(core, front.settings.default_deadline))
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(ClusterServicer(core), front.server.grpc)
    return core
