"""Filters over a cluster of processes that is fed while it answers."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tenacious import until

from winnow.bundle import default_bundle
from winnow.client import Client, PassageFields
from winnow.errors import InvalidRequestError
from winnow.tools.local.cluster import LocalCluster, LocalPlan

WON: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim of Lower Fnord.",
    "metadata": {"year": 2031},
}
ASKED = "Who won the Zorblax Prize in 2031?"


@pytest.fixture
def cluster(indexes: dict[int, Path], tmp_path: Path) -> Iterator[LocalCluster]:
    index = tmp_path / "index"
    shutil.copytree(indexes[2], index)
    plan = LocalPlan(index, default_bundle(), "127.0.0.1:0", feed_listen="127.0.0.1:0")
    with LocalCluster(plan) as made:
        made.start()
        asyncio.run(made.wait_ready())
        yield made


def test_filters_find_what_was_fed_by_fields_that_no_passage_had_before(
    cluster: LocalCluster,
) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:

        def found(where: str) -> list[str]:
            """With the last write: the front need not have heard of its field yet."""
            reply = asking.ask(ASKED, where=where, after=[put.position])
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
    """Why a filter is refused; empty if it is not."""
    try:
        asking.ask(ASKED, where=where)
    except InvalidRequestError as error:
        return str(error)
    return ""
