"""What is advised can be typed."""

from pathlib import Path

from winnow.content_node.merging.names import generation_path
from winnow.content_node.states.advice import states_command
from winnow.packaged import default_bundle


def test_a_generation_is_named_by_its_shard() -> None:
    shard = Path("index/shard-00000-of-00001")
    assert states_command(generation_path(shard, 3)) == states_command(shard)
    assert states_command(shard).startswith(f"`winnow index states {shard}`")


def test_a_directory_named_live_is_not_taken_for_a_log() -> None:
    for place in (Path("live/wiki"), Path("live/shard-00000-of-00001")):
        assert states_command(place, default_bundle()) == f"`winnow index states {place}`"


def test_the_bundle_is_named_unless_it_is_the_default_one() -> None:
    assert states_command(Path("index"), default_bundle()) == "`winnow index states index`"
    command = "`winnow index states 'my index' --bundle 'my bundle'`"
    assert states_command(Path("my index"), Path("my bundle")) == command
