"""When a shard is merged, as tables."""

import pytest

from winnow.content_node.merging.policy import (
    MergeBacklog,
    MergePolicy,
    MergeReason,
    needs_renumbering,
    retry_after,
)


@pytest.mark.parametrize(
    ("passages", "rows", "dead", "writes", "idle", "expected"),
    [
        (0, 0, 0, 0, 0, None),
        (100_000, 100_000, 0, 0, 1e9, None),  # nothing to merge, however long
        (0, 1_999, 0, 1_999, 0, None),
        (0, 2_000, 0, 2_000, 0, MergeReason.WRITES),
        (20_000, 22_000, 0, 2_000, 0, MergeReason.WRITES),
        (20_010, 22_010, 0, 2_000, 0, None),  # a tenth of the base is more than 2 000
        (20_010, 22_011, 0, 2_001, 0, MergeReason.WRITES),
        (1_000_000, 1_099_999, 0, 99_999, 0, None),
        (1_000_000, 1_100_000, 0, 100_000, 0, MergeReason.WRITES),
        (80_000, 100_000, 20_000, 5_000, 0, None),
        (80_000, 100_000, 20_001, 5_000, 0, MergeReason.HOLES),
        (12, 12, 12, 12, 0, None),  # few rows are compared one by one, with holes or without
        (100_000, 100_001, 0, 1, 599.9, None),
        (100_000, 100_001, 0, 1, 600, MergeReason.IDLE),
    ],
)
def test_a_shard_is_merged_for_writes_for_holes_or_when_it_is_idle(
    passages: int, rows: int, dead: int, writes: int, idle: float, expected: MergeReason | None
) -> None:
    assert (
        MergePolicy().merge_reason(
            MergeBacklog(passages=passages, rows=rows, dead=dead, writes=writes, idle=idle)
        )
        is expected
    )


@pytest.mark.parametrize(
    ("since", "expected"), [(None, None), (29.9, None), (30.0, MergeReason.TENANT)]
)
def test_a_shard_is_merged_soon_after_the_deletion_of_a_tenant(
    since: float | None, expected: MergeReason | None
) -> None:
    """Although there are few writes, and writes go on."""
    backlog = MergeBacklog(
        passages=1_000_000,
        rows=1_000_010,
        dead=10,
        writes=11,
        idle=0,
        since_tenant_deletion=since,
    )
    assert MergePolicy().merge_reason(backlog) is expected


def test_the_number_of_writes_can_be_set() -> None:
    assert (
        MergePolicy(min_writes=5).merge_reason(
            MergeBacklog(passages=10, rows=15, dead=0, writes=5, idle=0)
        )
        is MergeReason.WRITES
    )
    assert (
        MergePolicy(min_writes=5).merge_reason(
            MergeBacklog(passages=10, rows=14, dead=0, writes=4, idle=0)
        )
        is None
    )


@pytest.mark.parametrize(
    ("policy", "passages", "writes", "expected"),
    [
        (MergePolicy(), 5_000_000, 99_999, None),
        (MergePolicy(), 5_000_000, 100_000, MergeReason.WRITES),
        (MergePolicy(max_unmerged=100), 10, 49, None),
        (MergePolicy(max_unmerged=100), 10, 50, MergeReason.WRITES),
        (MergePolicy(max_unmerged=1), 10, 1, MergeReason.WRITES),
    ],
)
def test_a_shard_is_merged_before_it_takes_no_more_writes(
    policy: MergePolicy, passages: int, writes: int, expected: MergeReason | None
) -> None:
    assert (
        policy.merge_reason(
            MergeBacklog(passages=passages, rows=passages + writes, dead=0, writes=writes, idle=0)
        )
        is expected
    )


@pytest.mark.parametrize(
    ("rows", "holes", "expected"),
    [(0, 0, False), (10, 2, False), (10, 3, True), (1, 1, True), (100_000, 20_001, True)],
)
def test_rows_are_numbered_again_past_a_fifth_of_holes(
    rows: int, holes: int, expected: bool
) -> None:
    assert needs_renumbering(rows, holes) is expected


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (10_000, 300)]
)
def test_a_merge_that_fails_is_tried_again_ever_more_seldom(failures: int, seconds: float) -> None:
    assert retry_after(failures) == seconds
