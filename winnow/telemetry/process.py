"""What a process says of itself: its version, memory, processor time, threads and garbage."""

from importlib.metadata import PackageNotFoundError

import grpc
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from winnow.packaged import installed_version


def describe_process(registry: CollectorRegistry) -> None:
    """Adds `process_*`, `python_*` and `winnow_build_info`; to one registry of a process, once."""
    # a series beside every other, which nobody asks for
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("winnow_build", "The versions that run; always 1", registry=registry)
    build.info({"version": _version(), "grpc": grpc.__version__})


def _version() -> str:
    """Metrics are no reason to end, where the code runs without being installed."""
    try:
        return installed_version()
    except PackageNotFoundError:
        return "unknown"
