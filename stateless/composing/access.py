"""Who may call a front, and how it is known: keys, certificates, and looking at their files."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from winnow.address import Address
from winnow.keys.file import load_gate, watch_key_file
from winnow.keys.gate import Gate, HeaderGate, header_gate
from winnow.keys.metrics import KeyMetrics
from winnow.rpc import client_key
from winnow.rpc.guard import KeyGuard
from winnow.rpc.message_interceptor import Reject
from winnow.security.from_settings import ServerSecurity, peer_channels, server_security
from winnow.security.metrics import CertificateMetrics
from winnow.security.peers import PeerChannels
from winnow.stateless.settings import FrontSettings

_log = structlog.get_logger("stateless")


@dataclass(frozen=True, slots=True)
class FrontAccess:
    """How the servers of a front are protected, and how it calls other nodes."""

    security: ServerSecurity
    peers: PeerChannels
    _: KW_ONLY
    guarded: Callable[[Reject], Reject] = lambda behind: behind
    """Checks keys before another rule of gRPC rejects a call."""
    gate: HeaderGate = field(default_factory=lambda: open_gate)
    """Checks keys of HTTP."""
    beside: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)
    """Tasks that read the files again when they change, as long as the front serves."""


def open_access(settings: FrontSettings, registry: CollectorRegistry) -> FrontAccess:
    """Reads the files that the settings name.

    Raises:
        CertificateError: a certificate cannot be used.
        KeyFileError: the keys cannot be read.

    """
    metrics = CertificateMetrics(registry)
    peers = peer_channels(settings, metrics)
    security = server_security(settings, metrics, settings.most_peer_calls)
    beside = {"certificates of other nodes": peers.watch_files} if settings.peer_ca else {}
    if settings.keys is None:
        return FrontAccess(security, peers, beside=beside)
    key_metrics = KeyMetrics(registry)
    gate, file = load_gate(settings.keys, key_metrics.count_refusal)
    key_metrics.watch(lambda: file.current_at)
    _warn_of_plain_text(settings)
    beside["keys"] = partial(watch_key_file, file, gate)
    return FrontAccess(
        security, peers, guarded=partial(_guarded, gate), gate=header_gate(gate), beside=beside
    )


def _guarded(gate: Gate, behind: Reject) -> Reject:
    return KeyGuard(gate, behind)


def open_gate(
    _scope: str,
    headers: Iterable[tuple[str, str]],
    calls: int = 1,  # noqa: ARG001
    begun: int = 0,  # noqa: ARG001
) -> str:
    """Everybody may do everything, under the name that they give themselves."""
    return client_key.of_metadata(headers)


def _warn_of_plain_text(settings: FrontSettings) -> None:
    for listen in filter(None, (settings.listen, settings.feed_listen, settings.http_listen)):
        if settings.tls_cert is None and not Address.parse(listen).loopback:
            _log.warning("keys are sent in plain text, without --tls-cert", listen=listen)
