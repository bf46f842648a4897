"""Coverage is honest: counted in passages, never complete with a failure in it."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus

parts = st.lists(
    st.builds(
        ShardCoverage,
        shard=st.integers(0, 9),
        passages=st.integers(0, 10**9),
        status=st.sampled_from(ShardStatus),
    ),
    max_size=8,
    unique_by=lambda part: part.shard,
)


@given(parts)
def test_known_is_searched_plus_failed(shards: list[ShardCoverage]) -> None:
    coverage = Coverage.of(shards)
    assert coverage.known == coverage.searched + coverage.failed
    assert coverage.known == sum(part.passages for part in shards)


@given(parts)
def test_complete_only_without_any_failure(shards: list[ShardCoverage]) -> None:
    failed = any(part.status is not ShardStatus.SEARCHED for part in shards)
    assert Coverage.of(shards).complete is not failed
