"""Polls a cluster: one call to its front node, and one to each metrics endpoint."""

import http.client
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from winnow.address import Address
from winnow.cli.top.metrics_page import MetricsPage
from winnow.client import Client, Credentials
from winnow.client.calls import Call, request_id_metadata
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

_LARGEST = 16 << 20
"""Bytes of a page; a front node with a thousand shards has about 10 MB."""
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """The state of a cluster, and the metrics of processes, at one moment."""

    at: float
    """Seconds on a monotonic clock."""
    cluster: cluster_pb2.GetClusterResponse
    pages: dict[str, MetricsPage | str] = field(default_factory=dict)
    """Pages by address; a text instead says why there is none."""


class FrontPoller:
    """Polls one front node, and the metrics of any processes; a context manager."""

    def __init__(
        self,
        address: str,
        metrics: Sequence[str],
        timeout: float,
        credentials: Credentials | None = None,
    ) -> None:
        """`timeout`: seconds that each call may take; `credentials`: for the front node."""
        self._metrics, self._timeout = metrics, timeout
        self._client = Client(address, credentials=credentials)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "metrics")

    def poll(self) -> ClusterSample:
        """Takes a sample. Raises WinnowError if the front node does not reply."""
        pages = [self._threads.submit(_page, each, self._timeout) for each in self._metrics]
        cluster, at = self._cluster(), time.monotonic()
        found = [each.result() for each in pages]
        return ClusterSample(at, cluster, dict(zip(self._metrics, found, strict=True)))

    def _cluster(self) -> cluster_pb2.GetClusterResponse:
        stub, request = cluster_pb2_grpc.ClusterServiceStub, cluster_pb2.GetClusterRequest()
        call = Call(stub, "GetCluster", request, lambda message: message)
        reply: cluster_pb2.GetClusterResponse = self._client.reply(
            call, self._timeout, request_id_metadata(None)
        )
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _page(address: str, timeout: float) -> MetricsPage | str:
    """The metrics at an address, or why there are none."""
    at = Address.parse(address)
    connection = http.client.HTTPConnection(at.host, at.port, timeout=timeout)
    try:
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        if reply.status != http.client.OK:
            return f"it replies {reply.status} {reply.reason}"
        return MetricsPage.parsed(reply.read(_LARGEST).decode(errors="replace"))
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    except ValueError:
        return "this is no page of metrics"
    finally:
        connection.close()
