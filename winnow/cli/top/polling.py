"""Polls a cluster: one call to its front node, and one to each metrics endpoint."""

import http.client
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from winnow.address import Address
from winnow.cli.top.metrics_page import MetricsPage
from winnow.client import Client, Credentials
from winnow.client.calls import Call, request_id_metadata
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

_MAX_PAGE_BYTES = 16 << 20
"""Maximum size of a page. The page of a front node with a thousand shards has about 10 MB."""
_PARALLEL_PAGES = 8


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """The state of a cluster, and the metrics of processes, at one moment."""

    at: float
    """Seconds on a monotonic clock."""
    cluster: cluster_pb2.GetClusterResponse
    pages: dict[str, MetricsPage | str] = field(default_factory=dict)
    """The page of each address, or why there is none."""


class ClusterPoller:
    """A context manager that polls a front node, and the metrics of processes."""

    def __init__(
        self,
        address: str,
        metrics: Sequence[str],
        timeout: float,
        credentials: Credentials | None = None,
        *,
        index: str = "",
    ) -> None:
        """`timeout`: seconds that each call may take; `credentials`: for the front node.

        `index` is the name of the index; empty for the default index.
        """
        self._metrics, self._timeout = metrics, timeout
        self._client = Client(address, credentials=credentials, index=index)
        self._threads = ThreadPoolExecutor(_PARALLEL_PAGES, "metrics")

    def poll(self) -> ClusterSample:
        """Takes a sample. Raises WinnowError if the front node does not reply."""
        pages = [self._threads.submit(_fetch_page, each, self._timeout) for each in self._metrics]
        cluster, at = self._cluster(), time.monotonic()
        results = (each.result() for each in pages)
        return ClusterSample(at, cluster, dict(zip(self._metrics, results, strict=True)))

    def _cluster(self) -> cluster_pb2.GetClusterResponse:
        stub, request = cluster_pb2_grpc.ClusterServiceStub, cluster_pb2.GetClusterRequest()
        call = Call(stub, "GetCluster", request, lambda message: message)
        reply: cluster_pb2.GetClusterResponse = self._client.reply(
            call, self._timeout, request_id_metadata(None)
        )
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _fetch_page(address: str, timeout: float) -> MetricsPage | str:
    """Fetches the metrics at an address; returns the error message if that fails."""
    at = Address.parse(address)
    connection = http.client.HTTPConnection(at.host, at.port, timeout=timeout)
    try:
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        if reply.status != http.client.OK:
            return f"the reply is {reply.status} {reply.reason}"
        return MetricsPage.parse(reply.read(_MAX_PAGE_BYTES).decode(errors="replace"))
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    except ValueError:
        return "the reply is not a page of metrics"
    finally:
        connection.close()
