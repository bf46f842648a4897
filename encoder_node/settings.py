"""Settings of an encoder node."""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from winnow.inference.runtime import InferenceOptions, Runtime
from winnow.policy.batching import BatchLimits
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.values import Count, ListenAddress

_MOST_TEXTS = 16
_DEFAULT = BatchLimits()


class EncoderSettings(ServiceSettings):
    """Serve the question encoder of a bundle to front nodes.

    It keeps no encodings: each front node keeps its own.

    Example: winnow encoder --bundle bundles/default --listen 127.0.0.1:9100
    """

    table: ClassVar[str] = "encoder"

    listen: ListenAddress = Field(
        "127.0.0.1:9100", description="HOST:PORT to serve gRPC on; port 0 for any free one."
    )
    threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="Runs of the model at the same time; 0 for one per core, or one on a GPU.",
    )
    batch: int = Field(
        0,
        ge=0,
        le=_MOST_TEXTS,
        description="Most texts in one run of the model; 0 for 16 on a GPU, and 1 otherwise. "
        "More than 1 needs a float model.",
    )
    batch_tokens: int = Field(
        _DEFAULT.tokens,
        ge=1,
        le=1 << 20,
        description="Most tokens in one run of the model, with the padding to its longest text.",
    )
    batch_wait_ms: float = Field(
        _DEFAULT.wait * 1e3,
        ge=0,
        le=1_000,
        description="Milliseconds that a text waits for others to share a run with.",
    )
    max_texts: Count = Field(
        1_000, description="Most texts waiting to be encoded; more are refused."
    )

    @property
    def on_gpu(self) -> bool:
        """Whether the model runs on a GPU."""
        return self.runtime is Runtime.CUDA

    @property
    def runs(self) -> int:
        """Runs of the model at the same time."""
        return self.threads or (1 if self.on_gpu else cores())

    @property
    def batch_limits(self) -> BatchLimits:
        """What one run may take."""
        texts = self.batch or (_MOST_TEXTS if self.on_gpu else 1)
        return BatchLimits(texts, self.batch_tokens, self.batch_wait_ms / 1e3)

    @property
    def inference(self) -> InferenceOptions:
        """How the encoder is run: by every thread at once."""
        return replace(super().inference, runs=self.runs)
