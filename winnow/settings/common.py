"""Settings that every service has."""

import os
from enum import Enum
from pathlib import Path

from pydantic import Field

from winnow.bundle import default_bundle
from winnow.inference.runtime import InferenceOptions, Runtime
from winnow.settings.source import Settings


class LogFormat(str, Enum):
    """How log lines look."""

    JSON = "json"
    TEXT = "text"


class ServiceSettings(Settings):
    """What a front node and a content node have in common."""

    bundle: Path = Field(default_factory=default_bundle, description="Directory of models.")
    runtime: Runtime = Field(
        Runtime.AUTO,
        description="onnxruntime, openvino, or auto: by what the processor and the bundle are.",
    )
    intra_op_threads: int = Field(
        1, ge=1, le=1024, description="Threads of one run of a model, beside those of requests."
    )
    pad_to: int = Field(
        0, ge=0, le=512, description="Tokens that every input is padded to; 0 for none, the best."
    )
    metrics_listen: str = Field(
        "", description="HOST:PORT of the Prometheus endpoint; empty for none."
    )
    default_deadline: float = Field(
        2.0, gt=0, description="Seconds for calls whose caller sets no deadline."
    )
    drain_linger: float = Field(
        2.0, ge=0, description="Seconds to serve on after SIGTERM, while callers notice."
    )
    drain_grace: float = Field(10.0, ge=0, description="Seconds that running calls get after that.")
    log_level: str = Field(
        "info", pattern="(?i)^(debug|info|warning|error)$", description="Least level logged."
    )
    log_format: LogFormat = Field(LogFormat.JSON, description="json or text.")

    @property
    def inference(self) -> InferenceOptions:
        """How models are run."""
        return InferenceOptions(self.runtime, self.intra_op_threads, self.pad_to)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
