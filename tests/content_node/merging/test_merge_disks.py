"""A merge that the disk has no room for: nothing of it is left, and another one can be made."""

from pathlib import Path

import pytest
from live_shards import Fed, built
from small_disks import limited_files

from winnow.content_node.merging.child_process import MergeChild
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.names import newest_first
from winnow.content_node.shard import open_shard
from winnow.errors import WinnowError

TEXTS = {f"built {n}": f"text number {n} of {n % 7} " + "and more words " * 40 for n in range(40)}


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    fed = Fed(built(tmp_path, TEXTS), TEXTS)
    fed.apply([("new 0", "one"), ("built 3", None), ("new 0", "two")])
    return fed


def left(fed: Fed) -> list[str]:
    return [path.name for path in (fed.shard / "live").glob("generation-*")]


def test_wherever_the_disk_is_full_nothing_is_left_of_a_merge(fed: Fed) -> None:
    done = merge(fed.shard, fed.shard, fed.log.last)
    sizes = sorted({path.stat().st_size for path in Path(done.directory).iterdir()})
    (Path(done.directory)).rename(fed.shard / "kept")
    for size in sizes:  # this file, and all that are larger, have too little room
        with limited_files(size - 1), pytest.raises(WinnowError, match="generation-0"):
            merge(fed.shard, fed.shard, fed.log.last)
        assert left(fed) == []
    again = merge(fed.shard, fed.shard, fed.log.last)
    assert newest_first(left(fed)) == [Path(again.directory).name]
    assert open_shard(Path(again.directory), ef=64).manifest.passages == 40


def test_the_node_is_told_why_a_process_had_no_room(fed: Fed) -> None:
    with limited_files(20_000), pytest.raises(WinnowError, match="cannot write"):
        MergeChild(base=fed.shard, shard=fed.shard, upto=fed.log.last).run()
    assert left(fed) == []
    assert MergeChild(base=fed.shard, shard=fed.shard, upto=fed.log.last).run().passages == 40
