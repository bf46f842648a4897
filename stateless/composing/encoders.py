"""Opens the encoders of a front: models in this process, or encoder servers."""

import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from winnow.bundle import Bundle
from winnow.domain.encoder import StatesFormat
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.policy.byte_bounded_lru import MIB
from winnow.replicas.server_pool import follow_targets
from winnow.resolving import resolver
from winnow.stateless.composing.front import Front
from winnow.telemetry.metrics import CacheMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoder
from winnow.text.routed import RoutedTextEncoder
from winnow.text.tokenizer import Tokenizer

_MIN_TIMEOUT = 2.0
"""Minimum time limit of a text on encoder servers, in seconds."""


@dataclass(frozen=True, slots=True)
class OpenEncoder:
    """An encoder that questions and heads share."""

    bundle: Bundle
    tokenizer: Tokenizer
    encoder: TextEncoder
    width: int | None
    """Number of values of a token state. It is 0 if the encoder returns no states, and None if
    encoder servers run the model, because they may not be known yet.
    """


class Encoders:
    """Opens encoders, each with its own cache. The caches share metrics."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._cache_metrics = CacheMetrics(
            front.registry, "winnow_front_encoding_cache", "encoded texts"
        )
        self.tasks: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        """Tasks that resolve the addresses of encoder servers."""

    def open(
        self, bundle: Bundle, address: str = "", stack: contextlib.AsyncExitStack | None = None
    ) -> OpenEncoder:
        """Opens the encoder of a bundle in this process, or the encoder servers at `address`.

        Encoder servers may start later. `stack` closes the encoder; None for the front.
        """
        tokenizer = Tokenizer(bundle.tokenizer)
        if address:
            encoder, width = self._open_remote(bundle, address), None
        else:
            encoder, width = self._open_local(bundle, tokenizer)
        budget = self._front.settings.cache_mb * MIB
        cached = CachedTextEncoder(encoder, budget, self._cache_metrics)
        (stack or self._front.stack).callback(cached.close)
        return OpenEncoder(bundle, tokenizer, cached, width)

    def _open_local(self, bundle: Bundle, tokenizer: Tokenizer) -> tuple[TextEncoder, int | None]:
        settings = self._front.settings
        choosing = self._front.runtimes.chooser(bundle.manifest.name)
        options = replace(settings.inference, runs=settings.encoder_threads, chooser=choosing)
        model = open_question_encoder(
            bundle, tokenizer.special, options, settings.serves_heads, token_vectors=True
        )
        _, states = model.with_states([])
        width = 0 if states is None else states.shape[1]
        return LocalTextEncoder(model, settings.encoder_threads), width

    def _open_remote(self, bundle: Bundle, address: str) -> TextEncoder:
        front, settings = self._front, self._front.settings
        states = StatesFormat.FLOAT16 if settings.serves_heads else StatesFormat.NONE
        manifest = bundle.manifest
        encoder = RoutedTextEncoder(
            manifest.states_fingerprint,
            states,
            front.access.peers,
            token_vectors=manifest.token_vectors_fingerprint,
            # callers cancel at their own deadlines, which may be later than the default
            timeout=max(settings.default_deadline, _MIN_TIMEOUT),
        )
        front.stack.push_async_callback(encoder.close_nodes)
        self.tasks["encoders"] = partial(
            follow_targets, "encoder", [resolver(address)], encoder.update, settings.resolve_every
        )
        return encoder
