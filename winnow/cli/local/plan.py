"""The processes of a cluster on this machine, and the command line of each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from winnow.client.credentials import Credentials
from winnow.settings.common import cores
from winnow.settings.source import configured_value

_THREAD_SETTINGS = ("threads", "reader_threads")
_THREAD_FLAGS = tuple(f"--{each.replace('_', '-')}" for each in _THREAD_SETTINGS)


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """What to start. Content nodes listen on any free ports."""

    index: Path
    bundle: Path
    listen: str
    """HOST:PORT of the front node; port 0 for any free one."""
    metrics_listen: str = ""
    _: KW_ONLY
    reader_threads: int | None = None
    """Most threads of one request; with None the nodes share the cores (`threads_each`)."""
    one_process: bool = False
    """Whether front node and shards are one process, without content nodes."""
    replicas: int = 1
    """Content nodes per shard."""
    front: tuple[str, ...] = ()
    """Further flags of the front node."""
    node: tuple[str, ...] = ()
    """Further flags of every content node."""
    more_fronts: tuple[str, ...] = ()
    """HOST:PORT of further front nodes."""
    seen_as: Mapping[int, str] = field(default_factory=dict)
    """HOST:PORT by which the front node calls a content node, by the number of the content node,
    where it is not the node's own address.
    """
    node_metrics: bool = False
    """Whether content nodes serve metrics, on any free ports."""
    node_metrics_from: str = ""
    """HOST:PORT of the metrics of the first content node; each further one has the next port."""
    linger: float = 0.0
    """Seconds that a process still serves after SIGTERM. 0 fits a cluster whose processes end
    together: no client is left that would have to notice.
    """
    feed_listen: str = ""
    """HOST:PORT where the first front node takes passages; port 0 for any free one, empty for
    none.
    """
    http_listen: str = ""
    """HOST:PORT where the first front node serves HTTP; port 0 for any free one, empty for none."""
    health_listen: str = ""
    """HOST:PORT where the first front node tells its health in plain text; empty for the address
    where it answers.
    """
    credentials: Credentials | None = None
    """Credentials for asking front nodes whether they serve."""
    config: Path | None = None
    """TOML file with further settings of front and nodes; the plan takes precedence."""
    show_logs: bool = False


def commands(
    plan: LocalPlan,
    shards: Sequence[Path],
    nodes: Sequence[str],
    metrics: Sequence[str] = (),
    threads: int | None = None,
) -> dict[str, list[str]]:
    """The arguments of every process, by its name, nodes first.

    Args:
        plan: what to start; its addresses name their ports.
        shards: directory of the shard that each node serves.
        nodes: HOST:PORT of each node.
        metrics: HOST:PORT of each node's metrics; empty for none.
        threads: threads of each node; None leaves them to the nodes.

    """
    common = ["--bundle", str(plan.bundle), "--drain-linger", str(plan.linger)]
    common += _flag("--config", plan.config)
    # only the first front has these: others would need addresses of their own
    first = [
        *_flag("--metrics-listen", plan.metrics_listen),
        *_flag("--feed-listen", plan.feed_listen),
        *_flag("--health-listen", plan.health_listen),
        *_flag("--http-listen", plan.http_listen),
    ]
    if plan.one_process:
        serving = ["standalone", "--index", str(plan.index), "--listen", plan.listen, *first]
        return {"server": [*serving, *plan.front, *common]}
    per_request = plan.reader_threads if threads is None else threads
    limits = [*_flag("--threads", threads), *_flag("--reader-threads", per_request)]
    fed = ["--feed"] if plan.feed_listen else []
    found = {}
    for number, (shard, address) in enumerate(zip(shards, nodes, strict=True)):
        measured = ["--metrics-listen", metrics[number]] if metrics else []
        serving = ["node", "--shard", str(shard), "--listen", address, *fed]
        found[f"node {number}"] = [*serving, *limits, *measured, *plan.node, *common]
    asking = [
        flag
        for number, address in enumerate(nodes)
        for flag in ("--shards", plan.seen_as.get(number, address))
    ]
    for number, address in enumerate((plan.listen, *plan.more_fronts)):
        serving = ["front", "--listen", address, *asking, *([] if number else first)]
        found[f"front {number}" if number else "front"] = [*serving, *plan.front, *common]
    return found


def _flag(name: str, value: object) -> list[str]:
    return [name, str(value)] if value else []


def threads_each(
    plan: LocalPlan,
    nodes: int,
    environment: Mapping[str, str] | None = None,
    available: int | None = None,
) -> int | None:
    """A node's part of the cores, rounded up; None if a flag, variable or file sets the threads.

    A thread for every core in every node would slow each read by the number of nodes. Then a client
    would wait for reads of others that began long ago.

    Args:
        plan: may set threads by its flags, or name a settings file that does.
        nodes: content nodes on this machine.
        environment: variables; those of this process by default.
        available: cores; those of this process by default.

    Raises:
        SettingsError: the settings file cannot be read.

    """
    by_flag = plan.reader_threads or any(flag.startswith(_THREAD_FLAGS) for flag in plan.node)
    if by_flag or any(
        configured_value("node", each, plan.config, environment) for each in _THREAD_SETTINGS
    ):
        return None
    return math.ceil((cores() if available is None else available) / nodes)
