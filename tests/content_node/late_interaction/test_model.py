"""The model of token vectors is opened when it is needed, from a bundle that is verified again."""

import asyncio
import gc
import shutil
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archiving_index import built_index
from damaged_files import flip_bit
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens, turn

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.composing import loader as composing
from winnow.content_node.composing.one_index import SameIndexCheck
from winnow.content_node.composing.parts import SharedPassageTokens, open_node_parts
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.settings import NodeSettings
from winnow.errors import ArtefactError
from winnow.telemetry.runtimes import RuntimeMetrics

pytestmark = pytest.mark.bundle


def test_a_bundle_that_was_damaged_since_the_start_is_tried_again_a_minute_later(
    bundle: Bundle, tmp_path: Path
) -> None:
    """Questions must not wait for a try each."""
    directory = Path(shutil.copytree(bundle.directory, tmp_path / "bundle"))
    clock, encoder = ManualClock(), directory / "encoder.onnx"
    shared = SharedPassageTokens(load_bundle(directory), clock)
    flip_bit(encoder, 1_000_000)
    with pytest.raises(ArtefactError, match=r"encoder\.onnx is damaged"):
        shared.open()
    flip_bit(encoder, 1_000_000)
    clock.advance(59)
    with pytest.raises(ArtefactError, match=r"encoder\.onnx is damaged"):
        shared.open()
    clock.advance(1)
    opened = shared.open()
    assert shared.open() is shared.opened is opened
    shared.close()
    assert shared.opened is None
    assert shared.open() is not opened


def test_bundles_share_the_cache_and_the_thread_of_a_process(
    bundle: Bundle, tmp_path: Path
) -> None:
    """The limits are those of the process, and closing it ends the thread."""
    shared = SharedPassageTokens(bundle)
    other = shared.of_bundle(load_bundle(Path(shutil.copytree(bundle.directory, tmp_path / "b"))))
    assert (other.computed, other.background) == (shared.computed, shared.background)


@pytest.mark.parametrize("end", ["closed", "closed while it loads", "refused"])
async def test_nothing_is_computed_and_kept_for_a_shard_that_is_not_served(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorder: Any,
    end: str,
) -> None:
    """Its directory may be deleted, so its files must not stay open. A graph takes much memory."""
    opened: list[weakref.ref[LiveShard]] = []
    may_end = threading.Event()

    def advise(*_: object) -> list[str]:
        if end == "closed while it loads":
            assert may_end.wait(LONG)
        return []

    def check(*_: object) -> None:
        if end == "refused":
            raise ArtefactError("it is a shard of another index")

    async def set_serving(_: bool) -> None:
        """Has no health service."""

    def open_noted(*given: Any, **options: Any) -> LiveShard:
        live = open_live(*given, **options)
        opened.append(weakref.ref(live))
        return live

    monkeypatch.setattr(composing, "shard_advice", advise)
    monkeypatch.setattr(composing, "open_live", open_noted)
    [directory] = built_index(bundle, tmp_path, recorder).glob("shard-*")
    registry = CollectorRegistry()
    settings = NodeSettings.model_validate({"shard": directory})
    parts = open_node_parts(settings, bundle, registry, RuntimeMetrics(registry), shards=1)
    shard = RunningShard(
        directory,
        parts,
        registry,
        set_serving,
        check=check,
        live_shard=lambda number: pytest.fail(str(number)),
    )
    loading = asyncio.create_task(shard.load())
    if end == "closed while it loads":
        await happens(lambda: bool(opened))
        loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)
    if end != "refused":  # a node keeps shards that it refuses
        await shard.close()
    may_end.set()
    await happens(lambda: not shard.loading.is_running)
    await turn()
    assert parts.passage_tokens.background._generations == {}
    del loading
    if end != "closed":
        await happens(lambda: is_freed(opened[0]))  # the thread that loaded it forgets it last
    parts.close()


def is_freed(shard: weakref.ref[LiveShard]) -> bool:
    gc.collect()
    return shard() is None


async def test_a_generation_that_is_dropped_late_does_not_keep_a_closed_shard(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorder: Any
) -> None:
    """The last question of a generation may end after its shard was closed."""
    on_drop: list[Callable[[], None]] = []

    class Searcher(LocalSearcher):
        def __init__(self, *args: Any, **options: Any) -> None:
            on_drop.append(options["on_drop"])
            super().__init__(*args, **options)

    monkeypatch.setattr(composing, "LocalSearcher", Searcher)
    [directory] = built_index(bundle, tmp_path, recorder).glob("shard-*")
    registry = CollectorRegistry()
    settings = NodeSettings.model_validate({"shard": directory})
    parts = open_node_parts(settings, bundle, registry, RuntimeMetrics(registry), shards=1)
    check = SameIndexCheck().check
    loader = composing.ShardLoader(directory, parts, registry, check=check, closed_since=lambda: 0)
    live, _ = loader.load()
    loader.release()
    live.abandon()
    [dropped] = on_drop
    dropped()
    assert parts.passage_tokens.background._generations == {}
    parts.close()
