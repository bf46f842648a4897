"""Names of all metrics that the services declare."""

from functools import cache

from prometheus_client import CollectorRegistry

from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.disk_metrics import DiskMetrics
from winnow.content_node.metrics import ArchiveMetrics, MergeMetrics, NodeMetrics, ShardMetrics
from winnow.content_node.metrics import WriteMetrics as NodeFeedMetrics
from winnow.encoder_node.metrics import EncoderMetrics
from winnow.heads.metrics import HeadCacheMetrics, HeadNodeMetrics
from winnow.keys.metrics import KeyMetrics
from winnow.packaged import demo_corpus
from winnow.security.metrics import CertificateMetrics
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.http.connection_limiter import HttpMetrics
from winnow.stateless.metrics import (
    AdmissionMetrics,
    ClusterMetrics,
    FrontMetrics,
    ReadinessMetrics,
    ReplicaMetrics,
)
from winnow.stateless.reading.metrics import TextPoolMetrics, TextReadingMetrics
from winnow.stateless.tenants.metrics import QuotaMetrics
from winnow.telemetry.endpoint import register_process_metrics
from winnow.telemetry.metrics import (
    BundleMetrics,
    CacheMetrics,
    RpcMetrics,
    dropped_lines,
    trace_spans,
)
from winnow.telemetry.runtimes import RuntimeMetrics

_SNAPSHOTS = {"winnow_node_snapshot_timestamp_seconds", "winnow_node_snapshot_sequence"}
"""Metrics that only shards with a snapshot have."""


@cache
def declared() -> frozenset[str]:
    """Returns metric names of fronts, nodes, encoder and head servers; counters end in `_total`."""
    registry = CollectorRegistry()
    for made in (
        AdmissionMetrics, ArchiveMetrics, BundleMetrics, CertificateMetrics, ClusterMetrics, EncoderMetrics, FeedMetrics, FrontMetrics,
        HeadMetrics, HeadNodeMetrics, HttpMetrics, JournalMetrics, KeyMetrics, MergeMetrics, NodeFeedMetrics, NodeMetrics,
        QuotaMetrics, ReadinessMetrics, ReplicaMetrics, RpcMetrics, RuntimeMetrics, HeadCacheMetrics, ShardMetrics, TextPoolMetrics, TextReadingMetrics,
    ):  # fmt: skip
        made(registry)
    registry.register(dropped_lines(lambda: 0))
    registry.register(trace_spans(lambda: 0, lambda: 0))
    DiskMetrics(registry, demo_corpus())
    for cache_name in ("encoding", "answer"):
        CacheMetrics(registry, f"winnow_front_{cache_name}_cache", "things")
    CacheMetrics(registry, "winnow_reader_states_cache", "things")
    register_process_metrics(registry)
    total = {"counter": "_total", "info": "_info"}
    found = {f"{each.name}{total.get(each.type, '')}" for each in registry.collect()}
    return frozenset(found | _SNAPSHOTS)
