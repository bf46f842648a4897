"""What a cluster on this machine is made of, and the command line of each process. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from winnow.client.credentials import Credentials


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """What to start. Ports of content nodes are chosen freely."""

    index: Path
    bundle: Path
    listen: str
    """HOST:PORT of the front node; port 0 for any free one."""
    metrics_listen: str = ""
    reader_threads: int | None = None
    """Most threads that one request may use; with None the nodes share the cores (`cores`)."""
    replicas: int = 1
    """Content nodes per shard."""
    front: tuple[str, ...] = ()
    """Further flags of the front node."""
    node: tuple[str, ...] = ()
    """Further flags of every content node."""
    more_fronts: tuple[str, ...] = ()
    """HOST:PORT of further front nodes."""
    seen_as: Mapping[int, str] = field(default_factory=dict)
    """HOST:PORT under which the front finds a node, by its number, where that is not its own."""
    node_metrics: bool = False
    """Whether content nodes serve metrics, on ports chosen freely."""
    node_metrics_from: str = ""
    """HOST:PORT of the metrics of the first content node; of the next one it is the next port."""
    linger: float = 0.0
    """Seconds that a process serves on after SIGTERM. Where all end together there is nobody to
    notice that one leaves.
    """
    feed_listen: str = ""
    """HOST:PORT where the first front node takes passages; port 0 for any free one, empty for
    none.
    """
    http_listen: str = ""
    """HOST:PORT where the first front node serves HTTP; port 0 for any free one, empty for none."""
    health_listen: str = ""
    """HOST:PORT where the first front node tells its health in plain text; empty for where it
    answers.
    """
    credentials: Credentials | None = None
    """By which it is seen whether fronts serve."""
    config: Path | None = None
    """TOML file with further settings of front and nodes; what the plan says goes first."""
    show_logs: bool = False


def commands(
    plan: LocalPlan,
    shards: Sequence[Path],
    fronts: Sequence[str],
    nodes: Sequence[str],
    metrics: Sequence[str],
    threads_each: int | None = None,
    feed: str = "",
    http: str = "",
) -> dict[str, list[str]]:
    """The arguments of every process, by its name, nodes first.

    Args:
        plan: what to start.
        shards: directory of the shard that each node serves.
        fronts: HOST:PORT of each front.
        nodes: HOST:PORT of each node.
        metrics: HOST:PORT of each node's metrics, or nothing at all.
        threads_each: threads of each node, if that is not left to the nodes.
        feed: HOST:PORT where the first front takes passages; empty for none.
        http: HOST:PORT where the first front serves HTTP; empty for none.

    """
    common = ["--bundle", str(plan.bundle), "--drain-linger", str(plan.linger)]
    if plan.config is not None:
        common += ["--config", str(plan.config)]
    threads = ["--reader-threads", str(plan.reader_threads)] if plan.reader_threads else []
    if threads_each is not None:
        threads = ["--threads", str(threads_each), "--reader-threads", str(threads_each)]
    found = {}
    for number, (shard, address) in enumerate(zip(shards, nodes, strict=True)):
        measured = ["--metrics-listen", metrics[number]] if metrics else []
        serving = ["node", "--shard", str(shard), "--listen", address, *["--feed"] * bool(feed)]
        found[f"node {number}"] = [*serving, *threads, *measured, *plan.node, *common]
    seen = [plan.seen_as.get(number, address) for number, address in enumerate(nodes)]
    asking = [flag for address in seen for flag in ("--shards", address)]
    for number, address in enumerate(fronts):
        # further fronts have none: they would need addresses of their own
        measured = ["--metrics-listen", plan.metrics_listen] if not number else []
        serving = ["front", "--listen", address, *asking]
        name = f"front {number}" if number else "front"
        measured = measured if plan.metrics_listen else []
        fed = ["--feed-listen", feed] if feed and not number else []
        told = ["--health-listen", plan.health_listen] if plan.health_listen and not number else []
        faced = ["--http-listen", http] if http and not number else []
        found[name] = [*serving, *measured, *fed, *told, *faced, *plan.front, *common]
    return found
