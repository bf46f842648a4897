"""Shards that do not belong together are not served together."""

from dataclasses import replace

import pytest

from stateless.cluster import check, form
from winnow.domain.shard import ShardInfo
from winnow.errors import IdentityError
from winnow.fakes import FINGERPRINT, FakeSearcher, reading

GOOD = [ShardInfo(n, 3, "index", 10, 384, "bundle", "print") for n in range(3)]


def test_a_whole_index_in_any_order_is_accepted() -> None:
    check(GOOD[::-1], "print")


@pytest.mark.parametrize(
    ("infos", "message"),
    [
        (GOOD[:2], r"3 shards, the nodes serve \[0, 1\]"),
        ([GOOD[0], GOOD[0], GOOD[1]], r"\[0, 0, 1\]"),
        ([*GOOD[:2], replace(GOOD[2], index_id="other")], "of index other"),
        ([*GOOD[:2], replace(GOOD[2], dimension=768)], "shard 2 of 3"),
        ([*GOOD[:2], replace(GOOD[2], bundle_fingerprint="x")], "shard 2 of 3 serves bundle"),
    ],
)
def test_what_does_not_fit_is_named(infos: list[ShardInfo], message: str) -> None:
    with pytest.raises(IdentityError, match=message):
        check(infos, "print")


async def test_a_cluster_is_formed_by_shard_number() -> None:
    shards = [FakeSearcher([reading("a")], shard=n, shards=2) for n in (1, 0)]
    cluster = await form(shards, FINGERPRINT)
    assert cluster.searchers == {0: shards[1], 1: shards[0]}
    assert [info.passages for info in cluster.infos.values()] == [1, 1]
