"""Settings of an encoder node."""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from winnow.inference.options import InferenceOptions, Runtime
from winnow.policy.batching import BatchLimits
from winnow.settings.common import ServiceSettings, cores
from winnow.settings.values import Count, ListenAddress

_MAX_BATCH = 16
_DEFAULT_LIMITS = BatchLimits()


class EncoderSettings(ServiceSettings):
    """Serve the question encoder of a bundle to front nodes.

    An encoder node caches no encodings. Each front node has a cache.

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
        description="Number of concurrent runs of the model; 0 for one per core, or one on a GPU.",
    )
    batch: int = Field(
        0,
        ge=0,
        le=_MAX_BATCH,
        description="Maximum number of texts in one run of the model; 0 for 16 on a GPU and 1 on a "
        "CPU. More than 1 needs a float model.",
    )
    batch_tokens: int = Field(
        _DEFAULT_LIMITS.tokens,
        ge=1,
        le=1 << 20,
        description="Maximum number of tokens in one run of the model, including padding.",
    )
    batch_wait_ms: float = Field(
        _DEFAULT_LIMITS.wait * 1e3,
        ge=0,
        le=1_000,
        description="Milliseconds that a text waits for other texts to share a run of the model.",
    )
    max_texts: Count = Field(
        1_000,
        description="Maximum number of texts that wait to be encoded. Further texts are refused.",
    )

    @property
    def on_gpu(self) -> bool:
        """Whether the model runs on a GPU."""
        return self.runtime is Runtime.CUDA

    @property
    def runs(self) -> int:
        """Number of concurrent runs of the model."""
        return self.threads or (1 if self.on_gpu else cores())

    @property
    def batch_limits(self) -> BatchLimits:
        """Limits of one run of the model."""
        texts = self.batch or (_MAX_BATCH if self.on_gpu else 1)
        return BatchLimits(texts, self.batch_tokens, self.batch_wait_ms / 1e3)

    @property
    def inference(self) -> InferenceOptions:
        """Options of the inference runtime, with the number of concurrent runs."""
        return replace(super().inference, runs=self.runs)
