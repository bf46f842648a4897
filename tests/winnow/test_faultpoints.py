"""Fault points end the process only where a test wants it."""

import os
import re
import signal
from pathlib import Path

import pytest

from winnow import faultpoints
from winnow.faultpoints import FaultPoints

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    kills: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: kills.append((pid, number)))
    return kills


def test_nothing_happens_where_nothing_is_wanted(killed: list[tuple[int, int]]) -> None:
    points = FaultPoints("")
    for point in faultpoints.POINTS:
        points.reach(point)
        faultpoints.reach(point)
    assert not killed


def test_the_process_is_killed_where_it_comes_to_the_point_for_the_nth_time(
    killed: list[tuple[int, int]],
) -> None:
    points = FaultPoints("merge.graph:2")
    for point in ("merge.graph", "merge.words"):
        points.reach(point)
    assert not killed
    points.reach("merge.graph")
    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_every_point_that_is_listed_is_reached_somewhere_and_no_other() -> None:
    said = [
        point
        for place in ("content_node", "winnow")
        for file in (ROOT / place).rglob("*.py")
        for point in re.findall(r'\breach\("([a-z.]+)"\)', file.read_text(encoding="utf-8"))
    ]
    assert set(said) == set(faultpoints.POINTS)
