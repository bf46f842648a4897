"""Renders the Helm chart with Helm, and finds pods and containers in its manifests."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import needs
import pytest
import yaml

CHART = Path(__file__).parents[1] / "deploy" / "helm" / "winnow"
Manifest = dict[str, Any]

SMALL: Manifest = {"index": {"url": "s3://bucket/my-index"}}
"""The required values only."""
LARGE: Manifest = {
    "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": [{"name": "registry"}]},
    "index": {
        "url": "s3://bucket/my-index/",
        "shards": 3,
        "snapshot": "20260131T120000000-1a2b3c4d",
    },
    "bundle": {"url": "s3://models/mini"},
    "heads": {"url": "s3://bucket/heads"},
    "storage": {"secretName": "store"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/winnow"}},
    "node": {
        "replicas": 3,
        "autoscaling": {"enabled": True},
        "persistence": {"storageClass": "fast", "size": "200Gi"},
        "env": {"WINNOW_NODE_MAX_READS": 500, "WINNOW_NODE_LOG_LEVEL": "debug"},
        "nodeSelector": {"pool": "readers"},
        "tolerations": [{"key": "readers", "operator": "Exists"}],
    },
    "front": {"autoscaling": {"enabled": True}, "env": {"WINNOW_FRONT_MAX_LOSS": 1}},
    "feed": {"enabled": True},
    "nats": {"enabled": True},
    "networkPolicy": {
        "clients": [{"namespaceSelector": {"matchLabels": {"team": "search"}}}],
        "feeders": [{"podSelector": {"matchLabels": {"app": "importer"}}}],
        "scrapers": [{"namespaceSelector": {"matchLabels": {"team": "watching"}}}],
    },
    "tls": {"secretName": "certificate", "clients": True},
    "keys": {"secretName": "keys"},
    "monitoring": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "runbooks": "https://example.org/winnow/",
    },
}
"""Values that enable everything."""
READ_ONLY: Manifest = SMALL | {
    "node": {"persistence": {"enabled": False}, "replicas": 1},
    "networkPolicy": {"enabled": False},
}
"""Values for nodes without a persistent disk."""


def rendered(values: Manifest, release: str = "demo") -> list[Manifest]:
    """Returns all manifests of a release. Skips the test if Helm is missing."""
    with _helm().Chart.load(CHART) as chart:
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name=release, namespace="prod")
    texts = (text for name, text in sorted(files.items()) if name.endswith(".yaml"))
    return [found for text in texts for found in yaml.safe_load_all(text) if found]


def refused(values: Manifest) -> str:
    """Expects Helm to refuse the values; returns its error."""
    with pytest.raises(_helm().HelmError) as caught:
        rendered(values)
    return str(caught.value)


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yields the pod templates."""
    for each in manifests:
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each["spec"]["template"]


def containers(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yields the containers of all pods, including init containers."""
    for pod in pods(manifests):
        yield from pod["spec"].get("initContainers", [])
        yield from pod["spec"]["containers"]


@cache
def _helm() -> Any:
    return pytest.importorskip("helm_python", reason=needs.HELM)
