"""A cluster of processes that takes writes while it answers."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fed_cluster import ASKED, WON, fed_cluster
from tenacious import LONG, until

from winnow.cli.local.cluster import LocalCluster
from winnow.client import Client, Outcome
from winnow.errors import InvalidRequestError, OverloadedError, UnavailableError


@pytest.fixture(scope="module")
def cluster(
    indexes: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """A front node and two content nodes; each test writes other passages."""
    with fed_cluster(indexes[2], tmp_path_factory.mktemp("fed")) as made:
        yield made


def test_fed_passages_answer_questions_and_deleted_ones_do_not(cluster: LocalCluster) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        assert "Quendelheim" not in (asking.ask(ASKED).answer or "")
        (put,) = feeding.put(WON)
        assert put.outcome is Outcome.STORED
        reply = asking.ask(ASKED, fresh=True)
        assert "Marta Quendelheim" in (reply.answer or "")
        best = reply.answers[0].passage
        assert (best.id, best.metadata) == ("zorblax", {"year": 2031})
        assert [each.outcome for each in feeding.put(WON)] == [Outcome.UNCHANGED]
        feeding.put({**WON, "text": "The Zorblax Prize of 2031 was won by Ib Olsen."})
        assert "Ib Olsen" in (asking.ask(ASKED, fresh=True).answer or "")
        feeding.delete("zorblax")
        answers = asking.ask(ASKED, max_loss=0, fresh=True).answers
        assert "zorblax" not in [each.passage.id for each in answers]


def test_a_passage_of_the_built_index_can_be_replaced(cluster: LocalCluster) -> None:
    with Client(cluster.feed) as feeding, Client(cluster.address) as asking:
        asked = "How many hearts does an octopus have?"
        assert asking.ask(asked).answer == "three"
        text = "An octopus has seventeen hearts and eight arms."
        feeding.put({"id": "octopus", "title": "Octopus", "text": text})
        assert asking.ask(asked, fresh=True).answer == "seventeen"


def test_filters_find_fed_passages_by_new_fields(cluster: LocalCluster) -> None:
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
        until(lambda: "no field 'yaer': known are year" in refusal(asking, "yaer = 1"))
        feeding.delete("zorblax")


def refusal(asking: Client, where: str) -> str:
    """Returns the reason why a filter is refused; empty if it is accepted."""
    try:
        asking.ask(ASKED, where=where)
    except InvalidRequestError as error:
        return str(error)
    return ""


def test_no_acknowledged_write_is_lost_when_a_node_is_killed_under_writes(
    cluster: LocalCluster,
) -> None:
    """Writes wait until the node is restarted; every acknowledged one is stored."""
    stored: list[str] = []
    errors: list[Exception] = []

    def feed() -> None:
        with Client(cluster.feed) as feeding:
            for number in range(30):
                passages = [
                    {"id": f"n{number}-{n}", "text": f"Thing {number} {n} is blue."}
                    for n in range(4)
                ]
                try:
                    feeding.put(passages, timeout=LONG)  # type: ignore[arg-type]
                except (UnavailableError, OverloadedError) as error:
                    errors.append(error)
                else:
                    stored.extend(str(each["id"]) for each in passages)

    thread = threading.Thread(target=feed)
    thread.start()
    until(lambda: len(stored) > 20)
    os.kill(cluster.processes.pid("node 0"), signal.SIGKILL)
    until(lambda: "node 0" in cluster.processes.exit_codes())
    cluster.processes.restart("node 0")
    thread.join(LONG)
    assert not thread.is_alive()
    assert not errors
    assert len(stored) == 120
    with Client(cluster.feed) as feeding:
        for start in range(0, len(stored), 100):
            gone = feeding.delete(stored[start : start + 100])
            assert {each.outcome for each in gone} == {Outcome.STORED}
