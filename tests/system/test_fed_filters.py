"""Filters on a cluster of processes that takes writes while it answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fed_cluster import ASKED, WON, fed_cluster
from tenacious import until

from winnow.cli.local.cluster import LocalCluster
from winnow.client import Client
from winnow.errors import InvalidRequestError


@pytest.fixture
def cluster(indexes: dict[int, Path], tmp_path: Path) -> Iterator[LocalCluster]:
    with fed_cluster(indexes[2], tmp_path) as made:
        yield made


def test_filters_find_fed_passages_by_new_fields(
    cluster: LocalCluster,
) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:

        def found(where: str) -> list[str]:
            """With the last write: the front need not have heard of its field yet."""
            reply = asking.ask(ASKED, where=where, max_loss=0, after=[put.position])
            assert reply.coverage.complete
            return [answer.passage.id for answer in reply.answers]

        (put,) = feeding.put(WON)
        assert found("year >= 2031") == ["zorblax"]
        assert "zorblax" not in found("not exists year")
        (put,) = feeding.put({**WON, "metadata": {"year": 1031}})
        assert found("year >= 2031") == []
        # until the front has heard of the write, any field may be one
        until(lambda: "no field 'yaer': known are year" in refusal(asking, "yaer = 1"), 60)


def refusal(asking: Client, where: str) -> str:
    """Returns the reason why a filter is refused; empty if it is accepted."""
    try:
        asking.ask(ASKED, where=where)
    except InvalidRequestError as error:
        return str(error)
    return ""
