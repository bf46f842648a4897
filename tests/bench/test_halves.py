"""Whole reads and reads in halves, timed by turns: `bench/halves.py`."""

from pathlib import Path

from whole_bundle import WHOLE

from bench.halves import Read, draw, gold, measured, timed
from winnow.bundle import load_bundle


def test_every_way_is_taken_by_turns() -> None:
    taken: list[str] = []
    ways = [lambda: taken.append("a"), lambda: taken.append("b")]
    spent = timed(ways, 3)
    assert "".join(taken) == "abbaabba"
    assert [len(own) for own in spent] == [3, 3]


def test_others_are_compared_to_the_first_and_say_how_right_their_bundle_is() -> None:
    bundle = load_bundle(WHOLE)
    first, again = measured([bundle, bundle], tokens=8, reads=1)
    assert first.times_less == 1
    assert again.times_less > 0
    assert set(again.gold) == {"dev-squad", "dev-nq"}
    assert (again.apart, again.stored_bytes, again.computed) == (False, 0, None)


def test_an_accuracy_that_was_not_recorded_is_not_drawn(tmp_path: Path) -> None:
    manifest = load_bundle(WHOLE).manifest
    assert gold(manifest.model_copy(update={"accuracy": {}})) == {}
    reads = [Read("whole", False, 10, 9, 1, {"dev": 60.0}), Read("half", True, 5, 4, 2, {})]
    draw(reads, tmp_path / "halves.png")
    assert (tmp_path / "halves.png").read_bytes().startswith(b"\x89PNG")
