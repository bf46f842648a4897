"""Installs the stand-ins of the simulation. Everything else is the code that ships.

| stand-in | for |
|---|---|
| `clock` | clocks of the standard library |
| `randomness` | random generators without a seed, and `os.urandom` |
| `loop` | the event loop, and executors |
| `threads` | `FairThreads` and `DaemonWork` |
| `channel` | gRPC's channels and servers |
| `journal_client`, `journal_server` | nats-py and its server |
| `disk` | `os.fsync`, `os.pwrite` and SQLite's syncs |
| `models` | encoder and reader |
| `merge_process` | the child processes of merges and splits |
| `blocking_work` | threads that wait for calls on the event loop |
"""

import importlib
from functools import partial
from typing import Any

from rich.console import Console


def install(*, with_times: bool = False) -> None:
    """Installs all stand-ins. To be called once, before the code of the cluster is imported.

    `with_times`: whether work takes processor time (`simulation.tails`).
    """
    _module("simulation.clock").install()
    _module("simulation.randomness").install()
    _module("simulation.disk").install()
    _module("simulation.shared_files").install()
    fault_points = _module("winnow.faultpoints")
    fault_points.reach = _module("simulation.fault_points").reach
    fair_threads = _module("winnow.inference.fair_threads")
    niceness = _module("winnow.inference.niceness")
    if with_times:
        timed = _module("simulation.tails.threads")
        fair_threads.FairThreads, niceness.lower_priority = timed.TimedThreads, timed.lower_priority
    else:
        fair_threads.FairThreads = _module("simulation.threads").SimulatedThreads
        niceness.lower_priority = lambda _: None
    heap = _module("winnow.heap")
    heap.trim_heap = heap.collect_closed = lambda: None
    heap.trim_function = lambda: None
    daemon_work = _module("winnow.content_node.daemon_work")
    daemon_work.DaemonWork = _module("simulation.threads").SimulatedDaemonWork
    channel, addresses = _module("winnow.rpc.channel"), _module("simulation.addresses")
    channel.open_channel = channel.open_unshared = addresses.open_channel
    child = _module("winnow.content_node.merging.child_process")
    child.MergeChild = _module("simulation.merge_process").SimulatedMerge
    child.WritingChild = _module("simulation.merge_process").SimulatedWriting
    blocking = _module("simulation.blocking_work")
    blocking.install()
    receiving = _module("winnow.content_node.transfer.receiving")
    receiving._pull_files = blocking.blocking(receiving._pull_files)  # noqa: SLF001
    contents = _module("winnow.content_node.copying.shard_contents").ShardContents
    contents._fetch = blocking.blocking(contents._fetch)  # noqa: SLF001
    empty = _module("winnow.content_node.snapshots.empty")
    empty.BuildProgress = partial(empty.BuildProgress, Console(quiet=True))
    _module("winnow.journal.jetstream").Client = _module("simulation.journal_client").SimulatedNats
    # threads do not overlap, so each shard needs one connection only
    _module("winnow.content_node.shard.stored_segment")._CONNECTIONS = 1  # noqa: SLF001
    feed = _module("winnow.stateless.composing.feed")
    feed.FeedEncoder = _module("simulation.models").SimulatedFeedEncoder
    parts = _module("winnow.content_node.composing.parts")
    parts.SharedReader = _module("simulation.models").SimulatedReader
    _module("simulation.logs").install()


def _module(name: str) -> Any:
    return importlib.import_module(name)
