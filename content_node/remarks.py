"""What a node says of a shard that it could serve better. Pure but for looking for states."""

from collections.abc import Iterator
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.shard import StoredSegment
from winnow.content_node.states.advice import remedy
from winnow.content_node.states.manifest import STATES_FILE


def remarks(base: StoredSegment, shard: Path, bundle: Bundle) -> Iterator[str]:
    """What is known of the newest generation of a shard, and what to do, each in a sentence."""
    rebuild = "`winnow index build --passages INDEX --out NEW --shards N`"
    if not base.manifest.vouched_for:
        yield (
            "the shard is of an older version: an altered figure in its manifest would not be "
            f"noticed; {rebuild} brings it up to date"
        )
    if base.manifest.words is None:
        yield (
            "the shard is of an older version and has no words: they were counted in this shard "
            "alone, which took time and memory, and scores of several such shards cannot be "
            f"compared; {rebuild} brings it up to date"
        )
    elif not base.manifest.words.inverted:
        yield (
            "the shard is of an older version: the rows of each word were collected in memory, "
            f"which took time; {rebuild} brings it up to date"
        )
    # of damaged ones and those of another reader, whoever looks at them tells
    there = any((file.path.parent / STATES_FILE).exists() for file in base.files[:1])
    lacking = base.manifest.passages - base.states.held if base.states is not None else 0
    if bundle.manifest.lower_fingerprint:
        if lacking:
            yield (
                f"{lacking} of {base.manifest.passages} passages have no states yet: merges make "
                f"some each time, {remedy(shard, bundle.directory)} makes all"
            )
        if base.manifest.passages and not there:
            yield (
                "the shard has no states: half of the reading is done again for every question; "
                f"{remedy(shard, bundle.directory)} does it once"
            )
    elif there:
        yield (
            "the shard has states, which this bundle's reader cannot use: it sees question and "
            "passage together in every layer"
        )
