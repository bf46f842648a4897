"""What a process says of itself: its version, memory, processor time, threads and garbage."""

from importlib.metadata import PackageNotFoundError, version

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

_PARTS = ("winnow", "grpcio", "onnxruntime")


def describe_process(registry: CollectorRegistry) -> None:
    """Adds `process_*`, `python_*` and `winnow_build_info`; to one registry of a process, once."""
    # a series beside every other, which nobody asks for
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("winnow_build", "The versions that run; always 1", registry=registry)
    versions = {part: _version(part) for part in _PARTS}
    build.info({"version": versions.pop("winnow"), **versions})


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
