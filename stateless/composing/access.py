"""Opens the key file, the file of quotas and the certificates of a front, and watches them."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.address import Address
from winnow.keys.file import load_gate, watch_key_file
from winnow.keys.gate import HeaderGate, header_gate
from winnow.keys.metrics import KeyMetrics
from winnow.quotas.file import open_quota_file, watch_quota_file
from winnow.rpc import client_key
from winnow.rpc.guard import KeyGuard
from winnow.rpc.message_interceptor import Reject
from winnow.security.from_settings import ServerSecurity, peer_channels, server_security
from winnow.security.metrics import CertificateMetrics
from winnow.security.peers import PeerChannels
from winnow.stateless.settings import FrontSettings
from winnow.stateless.supervision import BackgroundTasks
from winnow.stateless.tenants.metrics import QuotaMetrics
from winnow.stateless.tenants.quotas import UNLIMITED, TenantQuotas

_log = structlog.get_logger("stateless")


@dataclass(frozen=True, slots=True)
class FrontAccess:
    """The keys and certificates that protect a front's servers and its calls to other nodes."""

    security: ServerSecurity
    """TLS and limits of the front's servers."""
    peers: PeerChannels
    """Opens channels to other nodes."""
    _: KW_ONLY
    with_key_check: Callable[[Reject], Reject] = lambda reject: reject
    """Returns a rule that checks the key of a gRPC call, and then applies the given rule."""
    gate: HeaderGate = field(default_factory=lambda: open_gate)
    """Checks the keys of HTTP requests."""
    quotas: TenantQuotas = UNLIMITED
    """Limits what tenants store and how often they call."""
    tasks: BackgroundTasks = field(default_factory=dict)
    """Tasks that reload changed files."""


def open_access(settings: FrontSettings, registry: CollectorRegistry) -> FrontAccess:
    """Reads the key file, the file of quotas and the certificates that the settings name.

    Raises:
        CertificateError: a certificate cannot be used.
        KeyFileError: the key file cannot be read.
        QuotaFileError: the file of quotas cannot be read.

    """
    metrics = CertificateMetrics(registry)
    peers = peer_channels(settings, metrics)
    security = server_security(settings, metrics, settings.most_peer_calls)
    tasks = {"certificates of other nodes": peers.watch_files} if settings.peer_ca else {}
    quotas = UNLIMITED
    if settings.quotas is not None:
        quota_file = open_quota_file(settings.quotas)
        quota_metrics = QuotaMetrics(registry)
        quota_metrics.watch_file(lambda: quota_file.current_at)
        quotas = TenantQuotas(lambda: quota_file.content, quota_metrics)
        tasks["quotas"] = partial(watch_quota_file, quota_file)
    if settings.keys is None:
        return FrontAccess(security, peers, quotas=quotas, tasks=tasks)
    key_metrics = KeyMetrics(registry)
    gate, file = load_gate(settings.keys, key_metrics.count_refusal)
    key_metrics.watch(lambda: file.current_at)
    _warn_of_plain_text(settings)
    tasks["keys"] = partial(watch_key_file, file, gate)
    return FrontAccess(
        security,
        peers,
        with_key_check=partial(KeyGuard, gate),
        gate=header_gate(gate),
        quotas=quotas,
        tasks=tasks,
    )


def open_gate(
    _scope: str,
    headers: Iterable[tuple[str, str]],
    calls: int = 1,  # noqa: ARG001
    begun: int = 0,  # noqa: ARG001
    others: Iterable[str] = (),  # noqa: ARG001
) -> str:
    """Allows every call. Returns the client key, which the caller chose."""
    return client_key.of_metadata(headers)


def _warn_of_plain_text(settings: FrontSettings) -> None:
    for listen in filter(None, (settings.listen, settings.feed_listen, settings.http_listen)):
        if settings.tls_cert is None and not Address.parse(listen).loopback:
            _log.warning("keys are sent in plain text: set --tls-cert", listen=listen)
