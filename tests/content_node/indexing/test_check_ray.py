"""What a build with Ray says where something that it needs is not installed."""

import importlib.util
import socket
from importlib.machinery import ModuleSpec

import pytest

from winnow.content_node.indexing import ray_cluster as cluster
from winnow.errors import WinnowError

SDK = "opentelemetry.sdk"


def lacking(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name == missing else ModuleSpec(name, None)

    monkeypatch.setattr(cluster, "find_spec", found)


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        pytest.param("ray", "Ray is not installed", id="ray"),
        pytest.param(SDK, "Ray cannot start without the SDK of OpenTelemetry", id="its-sdk"),
    ],
)
def test_a_missing_package_is_named_with_the_command_to_install_it(
    missing: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, missing)

    with pytest.raises(WinnowError, match=rf"{named}: .*pip install.*\[ray\]"):
        cluster.check_ray("")


def test_a_package_whose_parent_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> ModuleSpec | None:
        return importlib.util.find_spec("no_such_parent.sdk" if name == SDK else "importlib")

    monkeypatch.setattr(cluster, "find_spec", found)

    with pytest.raises(WinnowError, match="SDK of OpenTelemetry"):
        cluster.check_ray("")


def test_a_cluster_that_runs_already_is_used_without_the_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking(monkeypatch, SDK)

    with socket.create_server(("127.0.0.1", 0)) as there:
        cluster.check_ray(f"127.0.0.1:{there.getsockname()[1]}")
    cluster.check_ray(cluster.AUTO)
