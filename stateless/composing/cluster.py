"""Opens the discovery of content nodes, and the builder of the cluster."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.cluster.snapshot import ClusterSnapshot
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import NodeSource
from winnow.stateless.metrics import ClusterMetrics, ReplicaMetrics
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.stateless.words.served import ServedWords

_MAX_SILENT_POLLS = 2.5
"""Number of poll intervals after its last reply during which a node is assumed to be unchanged."""
_COUNT_EVERY = 1.0
"""Seconds between two updates of the word counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCluster:
    """The parts that discover nodes and build the cluster."""

    nodes: Discovery
    """Finds and polls the nodes."""
    builder: ClusterBuilder
    """Builds the cluster from the nodes that were found."""
    snapshot: ClusterSnapshot
    """What is known of the cluster."""
    words: ServedWords
    """Counts the words of the index."""
    part: FrontPart
    """Runs all of these."""


def open_cluster(
    front: Front, source: NodeSource, on_cluster: Callable[[Cluster], None]
) -> OpenCluster:
    """Opens the parts of a cluster. Its nodes are discovered once its `part` runs.

    `on_cluster` is called with each new cluster.
    """
    settings, manifest = front.settings, front.bundle.manifest
    encoding = FrontEncoding(manifest.fingerprint, manifest.encoder.dimension, manifest.name)
    replicas, policies = ReplicaMetrics(front.registry), settings.replica_policies
    node_calls = NodeCalls(policies.replicas.half_life, time.monotonic, random.Random())

    def open_shard(shard: int) -> ReplicatedSearcher:
        return ReplicatedSearcher(
            shard,
            lambda address: nodes.searcher(ReplicaAt(address, shard)),
            policies,
            clock=time.monotonic,
            rng=random.Random(),
            metrics=replicas,
            joint_calls=node_calls.running,
        )

    def open_joint(shards: Mapping[int, ReplicatedSearcher]) -> JointCalls:
        return JointCalls(
            shards,
            nodes.content_node,
            node_calls,
            policies=policies,
            clock=time.monotonic,
        )

    builder = ClusterBuilder(
        encoding,
        open_shard,
        on_cluster,
        metrics=ClusterMetrics(front.registry),
        open_joint=open_joint,
    )
    nodes = Discovery(
        source.resolvers(),
        source.open_node,
        lambda: builder.update(nodes.present_replicas(), nodes.nodes.values()),
        settings=settings.discovery,
        rng=random.Random(),
    )
    max_silence = _MAX_SILENT_POLLS * settings.poll_every
    snapshot = ClusterSnapshot(builder, nodes, max_silence, lambda: words.name)
    words = ServedWords(snapshot.word_sources, partial(asyncio.sleep, _COUNT_EVERY))

    async def prepare() -> None:
        await builder.wait_until_serving(source.form_timeout)
        await words.refresh()  # else the first questions would get other scores

    part = FrontPart(prepare, {"content nodes": nodes.run, "counts of words": words.run})
    return OpenCluster(nodes=nodes, builder=builder, snapshot=snapshot, words=words, part=part)
