"""Which index is served, and whether that is sure."""

from dataclasses import replace
from typing import Any

import pytest
from fakes import shard_info

from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.write import Position
from winnow.stateless.cluster.index_version import IndexVersion, index_version_of

INFOS = {n: shard_info(n, generation=f"rows-{n}") for n in range(2)}
NOW = {0: [0.1], 1: [0.1]}


def test_an_index_of_which_every_shard_was_heard_of_lately_is_sure() -> None:
    assert index_version_of(INFOS, NOW, 1.0).is_confirmed


@pytest.mark.parametrize(
    "change",
    [
        {"generation": "other"},
        {"index_id": "other"},
        {"bundle_fingerprint": "other"},
        {"passages": 11},
        {"sequence": 1},
        {"log_id": "log"},
    ],
)
def test_everything_that_answers_depend_on_changes_the_version(change: dict[str, Any]) -> None:
    other = {**INFOS, 1: replace(INFOS[1], **change)}
    assert index_version_of(other, NOW, 1.0).name != index_version_of(INFOS, NOW, 1.0).name


def test_how_busy_a_shard_is_makes_no_other_version() -> None:
    busy = {**INFOS, 1: replace(INFOS[1], reads_in_hand=9, seconds_per_read=0.1)}
    assert index_version_of(busy, NOW, 1.0) == index_version_of(INFOS, NOW, 1.0)


@pytest.mark.parametrize(
    "silences",
    [{0: [0.1], 1: [1.1]}, {0: [0.1], 1: []}, {0: [0.1]}, {0: [float("inf")], 1: [0.1]}],
    ids=["silent", "dead", "never seen", "gone"],
)
def test_a_shard_that_may_have_changed_unnoticed_makes_it_unsure(
    silences: dict[int, list[float]],
) -> None:
    assert index_version_of(INFOS, silences, 1.0) == replace(
        index_version_of(INFOS, NOW, 1.0), is_confirmed=False
    )


def test_one_replica_that_was_heard_of_will_do() -> None:
    assert index_version_of(INFOS, {0: [9.0, 0.1], 1: [0.2, 9.0]}, 1.0).is_confirmed


def test_merging_a_log_does_not_change_the_version() -> None:
    logged = {n: replace(info, log_id="log", sequence=7) for n, info in INFOS.items()}
    merged = {n: replace(info, generation="merged") for n, info in logged.items()}
    assert index_version_of(merged, NOW, 1.0) == index_version_of(logged, NOW, 1.0)


def test_a_write_that_is_known_of_and_other_counts_of_words_make_another_version() -> None:
    names = {
        index_version_of(INFOS, NOW, 1.0).name,
        index_version_of(INFOS, NOW, 1.0, {0: 1, 1: 0}).name,
        index_version_of(INFOS, NOW, 1.0, {0: 0, 1: 1}).name,
        index_version_of(INFOS, NOW, 1.0, words=("other",)).name,
    }
    assert len(names) == 4


def test_an_version_knows_the_writes_up_to_its_last_ones() -> None:
    version = index_version_of(INFOS, NOW, 1.0, {0: 7, 1: 0})
    assert version.includes([])
    assert version.includes([Position(0, 7), Position(1, 0)])
    assert not version.includes([Position(0, 8)])
    assert not version.includes([Position(1, 1)])


@pytest.mark.parametrize(("sequence", "made"), [(7, True), (6, False), (8, False), (None, False)])
def test_an_answer_is_of_an_version_only_if_every_shard_had_just_its_writes(
    sequence: int | None, made: bool
) -> None:
    version = index_version_of(INFOS, NOW, 1.0, {0: 7, 1: 0})
    parts = [(0, sequence), (1, 0)]
    coverage = Coverage.of(
        ShardCoverage(shard=n, passages=10, status=ShardStatus.SEARCHED, sequence=each)
        for n, each in parts
    )
    assert version.matches(coverage) == made


def test_an_index_of_unknown_rows_has_no_name() -> None:
    unknown = {**INFOS, 1: replace(INFOS[1], generation="")}
    assert index_version_of(unknown, NOW, 1.0) == IndexVersion(None)
    assert index_version_of({}, {}, 1.0) == IndexVersion(None)
