"""A shard whose index is a copy, or is about to be replaced by one, refuses writes of fronts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from doubtful_commits import doubt
from live_shards import built
from live_writes import delete, digested, put
from moving_shards import opened
from tenacious import LATER

from winnow.content_node.live.closing import Closing
from winnow.content_node.live.shard import LiveShard
from winnow.errors import IdentityError, IndexIsCopyError, OverloadedError, UnavailableError


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[LiveShard]:
    live = opened(built(tmp_path, {"a": "one two"}))
    yield live
    await live.close()


async def test_a_closed_shard_reports_all_writes_that_it_has_acknowledged(shard: LiveShard) -> None:
    """Writes that were queued before are stored and counted, or refused."""
    queued = [asyncio.create_task(shard.write([put(f"q{n}")], LATER)) for n in range(20)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(shard.close_to_fronts(Closing(7)))
    done = await asyncio.gather(*queued, return_exceptions=True)
    await closing
    stored = [each for each in done if not isinstance(each, BaseException)]
    assert all(isinstance(each, UnavailableError | list) for each in done)
    assert (shard.closed_since, shard.sequence) == (7, len(stored))
    for refused in (shard.write([put("b")], LATER), shard.find_unchanged([], LATER)):
        with pytest.raises(UnavailableError, match="an alias of the index is switched: try again"):
            await refused
    await shard.close_to_fronts(Closing())
    assert shard.closed_since == 0
    await shard.write([put("b")], LATER)
    assert shard.sequence == len(stored) + 1


async def test_a_shard_that_was_closed_and_restarts_has_no_write_whose_commit_had_failed(
    tmp_path: Path,
) -> None:
    """The index that replaces it lacks such a write, so nothing may bring it back."""
    directory = built(tmp_path, {"a": "one two"})
    shard = opened(directory)
    await shard.write([put("b", "stored")], LATER)
    doubt(shard._log)
    with pytest.raises(OverloadedError):
        await shard.write([put("b", "failed")], LATER)
    await shard.close_to_fronts(Closing(7))
    assert (shard.closed_since, shard.sequence) == (7, 1)
    await shard.close()
    again = opened(directory)
    assert again.sequence == 1
    await again.close()


async def test_a_shard_is_not_closed_before_a_write_that_failed_is_removed(
    shard: LiveShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OverloadedError("the disk is full", 1.0)

    await shard.write([put("b", "stored")], LATER)
    doubt(shard._log)
    with pytest.raises(OverloadedError):
        await shard.write([put("b", "failed")], LATER)
    with monkeypatch.context() as patch:
        patch.setattr(shard._log, "settle", fail)
        await shard.close_to_fronts(Closing(7))
    assert shard.closed_since == 0
    with pytest.raises(UnavailableError):
        await shard.write([put("c")], LATER)
    await shard.close_to_fronts(Closing(7))
    assert shard.closed_since == 7


async def test_a_copy_takes_the_writes_of_its_current_run_only(shard: LiveShard) -> None:
    shard.begin_closed(Closing(7, "docs"))
    await shard.store_copied([put("b", "two"), delete("a")], 7, LATER)
    assert shard.sequence == 2
    assert all(await shard.find_unchanged_copied([digested(put("b", "two"))], 7, LATER))
    with pytest.raises(IndexIsCopyError, match="a copy of docs, which takes the writes"):
        await shard.write([put("b")], LATER)
    await shard.close_to_fronts(Closing(9, "docs"))
    with pytest.raises(IdentityError, match="no writes of run 7 of copying"):
        await shard.store_copied([put("b")], 7, LATER)
    await shard.close_to_fronts(Closing())
    with pytest.raises(IdentityError):
        await shard.store_copied([put("b")], 9, LATER)
    assert shard.sequence == 2
