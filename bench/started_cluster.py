"""Starts content nodes that follow a file of control state, and a front, in processes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from winnow.cli.local.processes import Processes

_LOGS = ("--log-level", "error", "--log-format", "text")


def start_cluster(
    children: Processes,
    nodes: Mapping[str, str],
    data: Path,
    *,
    listen: str,
    feed: str = "",
    node_flags: Sequence[str] = (),
    front_flags: Sequence[str] = (),
    metrics: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Starts nodes that take writes, and a front named `front`.

    Args:
        children: ends the processes.
        nodes: address of each node, by its name.
        data: directory with the data directory of each node, named like it.
        listen: address of the front for questions.
        feed: address of the front for writes; empty for none.
        node_flags: further flags of the nodes, such as the file that they follow.
        front_flags: further flags of the front.
        metrics: address of the metrics of each node, by its name.

    """
    shards: list[str] = []
    for name, address in nodes.items():
        own = ("--name", name, "--data", str(data / name), "--listen", address, "--feed")
        measured = ("--metrics-listen", metrics[name]) if name in metrics else ()
        children.start(name, ["node", *own, *measured, *node_flags, *_LOGS])
        shards += ["--shards", address]
    feeding = ("--feed-listen", feed) if feed else ()
    children.start("front", ["front", *shards, "--listen", listen, *feeding, *front_flags, *_LOGS])
