"""The page of metrics, in the form that whoever fetches it understands best.

Only OpenMetrics has exemplars, which lead from a histogram to traces. Prometheus asks for it.
"""

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

_OPEN = "application/openmetrics-text"


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[str, bytes]:
    """The type of the page, and the page. `accept`: the header of that name, if there was one."""
    if _OPEN in accept:
        page: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return openmetrics.CONTENT_TYPE_LATEST, page
    return CONTENT_TYPE_LATEST, generate_latest(registry)
