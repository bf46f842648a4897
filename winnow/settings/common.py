"""Settings that services have in common."""

import os
from enum import Enum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from winnow.cgroups import cpu_quota
from winnow.inference.options import InferenceOptions, Runtime
from winnow.packaged import default_bundle
from winnow.settings.securing import SecuritySettings
from winnow.settings.source import Settings
from winnow.settings.values import (
    BUNDLE_HELP,
    BundleDirectory,
    CollectorUrl,
    OptionalListenAddress,
    Threads,
)

_LEVELS = {"debug", "info", "warning", "error"}


class LogFormat(str, Enum):
    """Format of log lines."""

    JSON = "json"
    TEXT = "text"


def _parse_level(value: str) -> str:
    if value.lower() not in _LEVELS:
        raise ValueError(f"expected debug, info, warning or error, not {value!r}")
    return value.lower()


class ModelSettings(Settings):
    """Settings of a process that runs models of a bundle."""

    bundle: BundleDirectory = Field(default_factory=default_bundle, description=BUNDLE_HELP)
    runtime: Runtime = Field(
        Runtime.AUTO,
        description="Library that runs the models: onnxruntime, openvino, or cuda (ONNX Runtime on "
        "a GPU). auto: for int8 models onnxruntime; for float models the faster of onnxruntime and "
        "openvino, timed for a second at start if openvino is installed.",
    )
    intra_op_threads: Threads = Field(
        1, description="Number of threads for each run of a model; 1 is best."
    )
    pad_to: int = Field(
        0,
        ge=0,
        le=512,
        description="Pad every input to this number of tokens; 0 disables padding. Split readers, "
        "such as the default bundle's, do not support it.",
    )

    @property
    def inference(self) -> InferenceOptions:
        """The options with which models run."""
        return InferenceOptions(
            runtime=self.runtime, intra_op_threads=self.intra_op_threads, pad_to=self.pad_to
        )


class ProcessSettings(SecuritySettings):
    """Settings of every process that serves."""

    metrics_listen: OptionalListenAddress = Field(
        "", description="HOST:PORT of the Prometheus endpoint; empty for none."
    )
    default_deadline: float = Field(
        2.0,
        gt=0,
        le=86_400,  # gRPC treats the largest numbers as a timeout of 0
        description="Seconds that a call may take if its caller sets no deadline.",
    )
    drain_linger: float = Field(
        2.0,
        ge=0,
        description="Seconds to keep serving after SIGTERM, so that callers can move elsewhere.",
    )
    drain_grace: float = Field(
        10.0, ge=0, description="Seconds that running calls get to finish before the process ends."
    )
    log_level: Annotated[str, AfterValidator(_parse_level)] = Field(
        "info", description="Lowest severity to log: debug, info, warning or error."
    )
    log_format: LogFormat = Field(
        LogFormat.JSON, description="Format of log lines: json for programs, text for people."
    )
    trace_to: CollectorUrl = Field(
        "",
        description="Collector to send traces to by OTLP over gRPC, such as http://HOST:4317; "
        "empty for none.",
    )

    @property
    def share_to_trace(self) -> float:
        """Share of the calls without a trace context that are traced; 0 except at front nodes."""
        return 0.0


class ServiceSettings(ProcessSettings, ModelSettings):
    """Settings of a server that runs models of a bundle."""


def cores(root: Path = Path("/")) -> int:
    """Number of cores that this process may use, by its CPU affinity and its CPU quota.

    A quota is rounded down: if more threads run than the quota allows, the kernel stops all threads
    for the rest of each tenth of a second, even those that answer calls. `root` is passed to
    `cpu_quota`.
    """
    affinity = hasattr(os, "sched_getaffinity")
    present = (len(os.sched_getaffinity(0)) if affinity else os.cpu_count()) or 1
    quota = cpu_quota(root)
    return present if quota is None else max(1, min(present, int(quota)))
