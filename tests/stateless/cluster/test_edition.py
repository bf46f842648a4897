"""Which index is served, and whether that is sure."""

from dataclasses import replace
from typing import Any

import pytest

from stateless.cluster.edition import Edition, edition_of
from winnow.domain.shard import ShardInfo

INFOS = {n: ShardInfo(n, 2, "index", 10, 2, "bundle", "print", f"rows-{n}") for n in range(2)}
NOW = {0: [0.1], 1: [0.1]}


def test_an_index_of_which_every_shard_was_heard_of_lately_is_sure() -> None:
    assert edition_of(INFOS, NOW, 1.0).sure


@pytest.mark.parametrize(
    "change",
    [
        {"generation": "other"},
        {"index_id": "other"},
        {"bundle_fingerprint": "other"},
        {"passages": 11},
    ],
)
def test_whatever_answers_depend_on_makes_it_another_edition(change: dict[str, Any]) -> None:
    other = {**INFOS, 1: replace(INFOS[1], **change)}
    assert edition_of(other, NOW, 1.0).name != edition_of(INFOS, NOW, 1.0).name


def test_how_busy_a_shard_is_makes_no_other_edition() -> None:
    busy = {**INFOS, 1: replace(INFOS[1], reads_in_hand=9, seconds_per_read=0.1)}
    assert edition_of(busy, NOW, 1.0) == edition_of(INFOS, NOW, 1.0)


@pytest.mark.parametrize(
    "silences",
    [{0: [0.1], 1: [1.1]}, {0: [0.1], 1: []}, {0: [0.1]}, {0: [float("inf")], 1: [0.1]}],
    ids=["silent", "dead", "never seen", "gone"],
)
def test_a_shard_that_may_have_changed_unnoticed_makes_it_unsure(
    silences: dict[int, list[float]],
) -> None:
    assert edition_of(INFOS, silences, 1.0) == replace(edition_of(INFOS, NOW, 1.0), sure=False)


def test_one_replica_that_was_heard_of_will_do() -> None:
    assert edition_of(INFOS, {0: [9.0, 0.1], 1: [0.2, 9.0]}, 1.0).sure


def test_an_index_of_unknown_rows_has_no_name() -> None:
    unknown = {**INFOS, 1: replace(INFOS[1], generation="")}
    assert edition_of(unknown, NOW, 1.0) == Edition(None)
    assert edition_of({}, {}, 1.0) == Edition(None)
