"""What checking one directory finds, where passages are equal."""

from dataclasses import replace
from pathlib import Path

from shards_made import make, passages

from winnow.content_node.indexing.contents import GraphTarget, check_contents


def test_five_hundred_equal_passages_are_no_fault_of_the_graph(tmp_path: Path) -> None:
    own = passages(600)
    same = [replace(own[0], passage=each.passage) for each in own[:500]]
    manifest = make(tmp_path / "shard", [*same, *own[500:]])
    found = check_contents(tmp_path / "shard", manifest, GraphTarget(sample=100, min_recall=0.9))
    assert found.faults == ()
