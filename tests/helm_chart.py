"""Renders the Helm chart with Helm, and finds pods and containers in its manifests."""

import re
import shutil
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
    "reader": {
        "replicas": 2,
        "autoscaling": {"enabled": True},
        "env": {"WINNOW_READER_READER_QUEUE": 1000},
        "nodeSelector": {"pool": "readers"},
    },
    "feed": {"enabled": True},
    "nats": {"enabled": True},
    "networkPolicy": {
        "clients": [{"namespaceSelector": {"matchLabels": {"team": "search"}}}],
        "feeders": [{"podSelector": {"matchLabels": {"app": "importer"}}}],
        "scrapers": [{"namespaceSelector": {"matchLabels": {"team": "watching"}}}],
    },
    "tls": {"secretName": "certificate", "clients": True},
    "keys": {"secretName": "keys"},
    "quotas": {"configMapName": "quotas"},
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
READERS: Manifest = {"reader": {"replicas": 2}}
"""Values for servers that only read texts."""

SHARED: Manifest = LARGE | {
    "index": {"url": "s3://bucket/my-index/"},
    "nodes": {"replicas": 3},
    "node": {"replicas": 2},
    "keys": {"secretName": "keys", "adminSecretName": "admin"},
}
"""Values for nodes that share all shards."""


def rendered(values: Manifest, release: str = "demo", chart: Path = CHART) -> list[Manifest]:
    """Returns all manifests of a release. Skips the test if Helm is missing."""
    with _helm().Chart.load(chart) as loaded:
        loaded.validate_schema(loaded.merge_values(values))
        files = loaded.render(values, name=release, namespace="prod")
    texts = (text for name, text in sorted(files.items()) if name.endswith(".yaml"))
    return [found for text in texts for found in yaml.safe_load_all(text) if found]


def chart_of_upgrade(nodes_before: int, directory: Path) -> Path:
    """Copies the chart; in the copy, `nodes_before` nodes share shards before the upgrade.

    Helm looks that up in the cluster, which tests lack.
    """
    copy = directory / CHART.name
    shutil.copytree(CHART, copy)
    helpers = copy / "templates" / "_helpers.tpl"
    found = f'(dict "spec" (dict "replicas" {nodes_before}))'
    text = helpers.read_text(encoding="utf-8")
    changed, count = re.subn(r"(?<=\$set := )lookup .*?(?= -}})", found, text)
    assert count == 1
    helpers.write_text(changed, encoding="utf-8")
    return copy


def refused(values: Manifest) -> str:
    """Expects Helm to refuse the values; returns its error."""
    with pytest.raises(_helm().HelmError) as caught:
        rendered(values)
    return str(caught.value)


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yields the pod templates."""
    for each in manifests:
        if each["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield each["spec"]["template"]


def containers(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yields the containers of all pods, including init containers."""
    for pod in pods(manifests):
        yield from pod["spec"].get("initContainers", [])
        yield from pod["spec"]["containers"]


@cache
def _helm() -> Any:
    return pytest.importorskip("helm_python", reason=needs.HELM)
