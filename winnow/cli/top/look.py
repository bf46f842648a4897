"""A look at a cluster: what its front says, and pages of metrics. Plain values."""

from dataclasses import dataclass, field

from winnow.cli.top.page import Page
from winnow.v1.cluster_pb2 import GetClusterResponse


@dataclass(frozen=True, slots=True)
class Look:
    """What was there at one moment."""

    at: float
    """Seconds, on a clock that only goes forward."""
    cluster: GetClusterResponse
    pages: dict[str, Page | str] = field(default_factory=dict)
    """By address; why there is none, where it could not be had."""
