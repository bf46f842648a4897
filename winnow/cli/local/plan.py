"""Plans the processes of a cluster on this machine, and their command lines."""

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
    """The processes to start. Content nodes listen on any free ports."""

    index: Path
    bundle: Path
    listen: str
    """HOST:PORT of the front node; port 0 for any free port."""
    metrics_listen: str = ""
    """HOST:PORT of the front node's metrics; empty for none."""
    _: KW_ONLY
    reader_threads: int | None = None
    """Maximum number of threads of one request; None lets the nodes share the cores
    (`threads_per_node`).
    """
    one_process: bool = False
    """Whether front node and shards are one process, without content nodes."""
    nodes: int = 0
    """Number of content nodes that share the shards; 0 for one node per shard."""
    replicas: int = 1
    """Number of content nodes that hold each shard."""
    front: tuple[str, ...] = ()
    """More flags of the front node."""
    node: tuple[str, ...] = ()
    """More flags of every content node."""
    more_fronts: tuple[str, ...] = ()
    """HOST:PORT of more front nodes."""
    proxied_nodes: Mapping[int, str] = field(default_factory=dict)
    """HOST:PORT of the proxy of a content node, by number of the node.

    The front node calls these nodes through their proxies.
    """
    node_metrics: bool = False
    """Whether content nodes serve metrics, on any free ports."""
    first_node_metrics: str = ""
    """HOST:PORT of the metrics of the first content node; the others get the next ports."""
    drain_linger: float = 0.0
    """Seconds that a process keeps serving after SIGTERM.

    0 suits a cluster whose processes end together, because callers cannot move to another process.
    """
    feed_listen: str = ""
    """HOST:PORT of the first front node for feeding; port 0 for any free port, empty for none."""
    http_listen: str = ""
    """HOST:PORT of the first front node for HTTP; port 0 for any free port, empty for none."""
    health_listen: str = ""
    """HOST:PORT of the first front node for plain-text health checks; empty for its main port."""
    credentials: Credentials | None = None
    """Credentials for health checks of front nodes."""
    config: Path | None = None
    """TOML file with more settings of front and content nodes. The plan takes precedence."""
    show_logs: bool = False
    """Whether processes log to standard error, instead of to temporary files."""


def process_commands(
    plan: LocalPlan,
    shards: Sequence[Sequence[Path]],
    nodes: Sequence[str],
    metrics: Sequence[str] = (),
    threads: int | None = None,
) -> dict[str, list[str]]:
    """The command line of every process, by name; content nodes come first.

    Args:
        plan: the processes to start; its addresses have ports other than 0.
        shards: directories of each content node's shards.
        nodes: HOST:PORT of each node.
        metrics: HOST:PORT of each node's metrics; empty for none.
        threads: threads of each content node; None for the node's default.

    """
    common = ["--bundle", str(plan.bundle), "--drain-linger", str(plan.drain_linger)]
    common += _flag("--config", plan.config)
    # only for the first front node: others would need other addresses
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
    commands = {}
    for number, (own, address) in enumerate(zip(shards, nodes, strict=True)):
        metrics_flags = ["--metrics-listen", metrics[number]] if metrics else []
        held = [flag for shard in own for flag in ("--shard", str(shard))]
        serving = ["node", *held, "--listen", address, *fed]
        commands[f"node {number}"] = [*serving, *limits, *metrics_flags, *plan.node, *common]
    shard_flags = [
        flag
        for number, address in enumerate(nodes)
        for flag in ("--shards", plan.proxied_nodes.get(number, address))
    ]
    for number, address in enumerate((plan.listen, *plan.more_fronts)):
        serving = ["front", "--listen", address, *shard_flags, *([] if number else first)]
        commands[f"front {number}" if number else "front"] = [*serving, *plan.front, *common]
    return commands


def shards_of_nodes(shards: Sequence[Path], nodes: int, replicas: int) -> list[list[Path]]:
    """Divides the shards among `nodes` nodes, each with `replicas` replicas; returns their shards.

    Replicas with the same shards follow each other. `nodes` is at most the number of shards; 0
    means one node per shard.
    """
    nodes = nodes or len(shards)
    return [list(shards[node::nodes]) for node in range(nodes) for _ in range(replicas)]


def _flag(name: str, value: object) -> list[str]:
    return [name, str(value)] if value else []


def threads_per_node(
    plan: LocalPlan,
    nodes: int,
    environment: Mapping[str, str] | None = None,
    available: int | None = None,
) -> int | None:
    """Cores per content node, rounded up; None if a flag, variable or file sets the threads.

    If every node had a thread for every core, each read would be slower by the number of nodes.
    A client would also wait for reads of other clients that began long ago.

    Args:
        plan: may set threads by flags or by its settings file.
        nodes: content nodes on this machine.
        environment: environment variables, by default those of this process.
        available: number of cores, by default those of this process.

    Raises:
        SettingsError: the settings file cannot be read.

    """
    by_flag = plan.reader_threads or any(flag.startswith(_THREAD_FLAGS) for flag in plan.node)
    if by_flag or any(
        configured_value("node", each, plan.config, environment) for each in _THREAD_SETTINGS
    ):
        return None
    return math.ceil((cores() if available is None else available) / nodes)
