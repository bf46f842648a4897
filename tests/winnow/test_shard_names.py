"""Names of the directories of shards."""

import pytest

from winnow.domain.shard import shard_name, shard_number_of


@pytest.mark.parametrize("shard", [0, 7, 4_095])
def test_the_number_of_a_shard_is_in_the_name_of_its_directory(shard: int) -> None:
    assert shard_number_of(shard_name(shard, 4_096)) == shard


@pytest.mark.parametrize(
    "name", ["", "shard-0", "shard-1-of-3", "shard-00001-of-", "shard-0000²-of-00003", "index"]
)
def test_another_directory_has_no_number(name: str) -> None:
    assert shard_number_of(name) is None
