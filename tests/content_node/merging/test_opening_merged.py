"""Opening what was merged keeps Python's lock from the event loop for as short as can be."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from winnow.bundle import load_bundle
from winnow.content_node.composing import loader as composing
from winnow.content_node.composing.loader import ShardLoader
from winnow.content_node.composing.one_index import SameIndexCheck
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.policy import MergeReason
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.settings import NodeSettings
from winnow.packaged import default_bundle
from winnow.telemetry.runtimes import RuntimeMetrics


@dataclass
class FakeShard:
    """A shard that is told what is served."""

    directory: Path = Path("built")
    merged: int = 0
    sequence: int = 1
    view: Any = field(default_factory=lambda: SimpleNamespace(has_token_vectors=False))
    served: list[object] = field(default_factory=list)

    def file_change(self) -> None:
        pass

    async def swap(self, base: object) -> None:
        self.served.append(base)

    async def trim(self, upto: int) -> None:
        pass


async def test_a_graph_is_loaded_by_a_thread_that_gives_way_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hnswlib holds the lock while it loads: a thread that rarely runs would hold it for long."""
    niceness: list[int] = []

    def open_shard(*_: Any, **__: Any) -> str:
        niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return "segment"

    monkeypatch.setattr(composing, "open_shard", open_shard)
    monkeypatch.setattr(
        MergeChild, "run", lambda _: Merged(directory="merged", sequence=1, passages=1, rows=1)
    )
    shard, registry = FakeShard(), CollectorRegistry()
    settings = NodeSettings.model_validate({"shard": tmp_path})
    assert settings.reader_nice
    bundle = load_bundle(default_bundle())
    parts = open_node_parts(settings, bundle, registry, RuntimeMetrics(registry), shards=1)
    live: Any = shard
    loader = ShardLoader(
        tmp_path, parts, registry, check=SameIndexCheck().check, closed_since=lambda: 0
    )
    await loader.open_merger(live).merge(MergeReason.WRITES)
    parts.close()
    assert shard.served == ["segment"]
    assert niceness == [os.getpriority(os.PRIO_PROCESS, os.getpid())]
