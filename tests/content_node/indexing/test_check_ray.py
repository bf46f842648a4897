"""What a build with Ray says where something that it needs is not installed."""

from importlib.machinery import ModuleSpec

import pytest

from winnow.content_node.indexing.workers import cluster
from winnow.errors import WinnowError


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        pytest.param("ray", "Ray is not installed", id="ray"),
        pytest.param("opentelemetry.sdk", "SDK of OpenTelemetry, which Ray needs", id="its-sdk"),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(
    missing: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name == missing else ModuleSpec(name, None)

    monkeypatch.setattr(cluster, "find_spec", found)

    with pytest.raises(WinnowError, match=rf"{named}.*pip install.*\[ray\]"):
        cluster.check_ray("")


def test_a_package_whose_parent_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_NEEDED", {"the package": "no_such_parent.package"})

    with pytest.raises(WinnowError, match="the package is not installed"):
        cluster.check_ray("")
