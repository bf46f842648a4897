"""What a process says of itself: its version, memory, processor time, threads and garbage."""

import grpc
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from winnow.packaged import running_version


def describe_process(registry: CollectorRegistry) -> None:
    """Adds `process_*`, `python_*` and `winnow_build_info`; to one registry of a process, once."""
    # a series beside every other, which nobody asks for
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("winnow_build", "The versions that run; always 1", registry=registry)
    build.info({"version": running_version(), "grpc": grpc.__version__})
