"""The formulae of sizing, with figures that are easy to check."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from units_made import units

from winnow.cli.plan import formulae
from winnow.cli.plan.latency import QuestionCosts, p50_ms, p99_ms

READ = units().node.read


@pytest.mark.parametrize(("tokens", "ms"), [(100, 10), (150, 15), (200, 20), (300, 30), (50, 5)])
def test_lengths_between_and_beyond_measured_ones_lie_on_their_lines(
    tokens: int, ms: float
) -> None:
    assert formulae.interpolate_ms(READ, tokens) == pytest.approx(ms)


def test_no_length_costs_nothing() -> None:
    assert formulae.interpolate_ms(READ, 1) == 5.0


def test_a_walk_grows_with_the_logarithm_of_the_passages_and_with_the_dimension() -> None:
    costs = units()
    assert formulae.search_ms(costs, 10_000, 384) == pytest.approx(0.4)
    assert formulae.search_ms(costs, 100_000, 384) == pytest.approx(0.5)
    assert formulae.search_ms(costs, 1_000, 768) == pytest.approx(0.6)
    assert formulae.search_ms(costs, 1, 384) == pytest.approx(0.15)
    # the whole retrieval has 0.6 ms beside its walk
    assert formulae.retrieve_ms(costs, 100_000, 384) == pytest.approx(1.1)


def test_a_passage_takes_its_vector_its_links_and_the_rest() -> None:
    assert formulae.node_bytes_per_passage(units(), 768) == pytest.approx(4 * 768 + 150 + 450)
    # on disk the vector lies twice, and the measured rest has one of 384 values
    more = 4 * (768 - 384)
    assert formulae.disk_bytes_per_passage(units(), 768) == pytest.approx(
        4 * 768 + 150 + 3_000 + more
    )


@pytest.mark.parametrize(
    ("passages", "shards", "share", "most"),
    [(10, 1, 0.5, 10), (10, 10, 0.5, 3), (1, 8, 0.99, 1), (10, 1_000, 0.5, 1), (2, 2, 0.99, 2)],
)
def test_the_passages_of_the_busiest_shard(
    passages: int, shards: int, share: float, most: int
) -> None:
    assert formulae.max_reads_per_shard(passages, shards, share) == most


@given(st.integers(1, 30), st.integers(1, 200))
def test_the_busiest_shard_reads_its_part_at_least_and_more_for_more_questions(
    passages: int, shards: int
) -> None:
    half, nearly_all = (
        formulae.max_reads_per_shard(passages, shards, share) for share in (0.5, 0.99)
    )
    assert passages / shards <= half <= nearly_all <= passages


def test_a_front_spends_on_the_question_its_shards_their_pairs_and_reads() -> None:
    assert formulae.front_ms(units(), 100, 1) == pytest.approx(2 + 25 + 10 + 0.5)


def test_nodes_retrieve_everywhere_and_read_what_is_read() -> None:
    assert formulae.node_ms(units(), 8, 1.5, 10.0, 1) == pytest.approx(8 * 2.5 + 10 + 1 + 1)


def test_waiting_for_one_server_is_exponential() -> None:
    # M/M/1, half busy: half the requests wait, and these wait ln(0.5 / 0.01) times their mean
    assert formulae.waiting_ms(10, 1, 0.5, 0.01) == pytest.approx(20 * 3.912, rel=1e-3)
    assert formulae.waiting_ms(10, 8, 0.01, 0.01) == 0.0


def test_waiting_for_as_many_servers_as_there_can_be_is_a_number() -> None:
    # the sums of M/M/c are beyond floating point, and their logarithms are not: 0.656 wait at all
    expected = 10 / (1_024 * 0.01) * math.log(0.655599 / 0.01)
    assert formulae.waiting_ms(10, 1_024, 0.99, 0.01) == pytest.approx(expected, rel=1e-5)


@given(st.integers(1, 1_024), st.floats(0.0, 0.9), st.floats(0.0, 0.09))
def test_more_load_is_never_faster(servers: int, busy: float, more: float) -> None:
    assert formulae.waiting_ms(10, servers, busy + more, 0.01) >= formulae.waiting_ms(
        10, servers, busy, 0.01
    ) * (1 - 1e-9)


def test_a_question_takes_what_its_parts_take_one_after_the_other() -> None:
    served = QuestionCosts(shards=1, passages=8, cores=4, front=3.0, retrieve=1.5, read=10.0)
    # front, encoding, retrieval, two calls, the question's own half, two rounds of four reads
    assert p50_ms(units(), served) == pytest.approx(3 + 2 + 1.5 + 2 + 1 + 20)
    assert p99_ms(units(), served, 0.0, 0.0) == pytest.approx(p50_ms(units(), served))
    assert p99_ms(units(), served, 0.5, 0.1) > p50_ms(units(), served)
