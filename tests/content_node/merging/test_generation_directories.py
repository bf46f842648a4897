"""What lies beside a shard's generations, and what of it may go."""

from pathlib import Path

from winnow.content_node.merging.names import (
    damaged_path,
    generation_path,
    generation_sequence,
    newest_first,
    obsolete_names,
    partial_names,
    partial_path,
)

OLD, NEW = (generation_path(Path("shard"), sequence).name for sequence in (7, 12))
PARTIAL, DAMAGED = partial_path(Path(NEW)).name, damaged_path(Path(OLD)).name
OTHERS = [
    "writes.sqlite",
    "generation-12",
    "generation-",
    "generation-0000000000000000001x",
    f"generation-{chr(0x660) * 20}",  # digits of another script
    "my.partial",
    "generation-.partial",
    "00000000000000000012",
]
ALL = [*OTHERS, OLD, NEW, PARTIAL, DAMAGED]


def test_a_generation_is_called_by_its_last_write() -> None:
    assert generation_path(Path("shard"), 12) == Path("shard/live/generation-00000000000000000012")
    assert [generation_sequence(name) for name in (OLD, NEW)] == [7, 12]


def test_only_whole_generations_are_served_the_newest_first() -> None:
    assert newest_first(ALL) == [NEW, OLD]


def test_only_what_a_merge_left_unfinished_is_removed_at_a_start() -> None:
    assert partial_names(ALL) == [PARTIAL]


def test_older_generations_and_damaged_ones_go_when_a_newer_one_is_served() -> None:
    assert obsolete_names(ALL, 12) == [OLD, DAMAGED]
    assert obsolete_names(ALL, 7) == [DAMAGED]
