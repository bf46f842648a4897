"""The file of unit costs."""

import json
from pathlib import Path

import pytest
from units_made import units

from winnow.errors import ArtefactError
from winnow.sizing.synthetic import synthetic_passages, synthetic_questions
from winnow.sizing.units import SPREAD_QUANTILES, read_unit_costs, shipped_unit_costs


def test_units_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "units.json"
    path.write_text(units().model_dump_json())
    assert read_unit_costs(path) == units()


def test_the_shipped_units_are_complete_and_in_order() -> None:
    ours = shipped_unit_costs()
    for spread in (ours.node.spread, ours.node.retrieve_spread):
        assert list(spread) == sorted(spread)
        assert spread[SPREAD_QUANTILES.index(0.5)] == pytest.approx(1.0, abs=0.05)
    for costs in (ours.encode.question, ours.node.read):
        assert [each.tokens for each in costs] == sorted({each.tokens for each in costs})


def test_a_file_without_units_is_refused_by_the_field_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "units.json"
    content = json.loads(units().model_dump_json())
    content["node"]["together"] = -1
    path.write_text(json.dumps(content))
    with pytest.raises(ArtefactError, match=r"units\.json has no unit costs: node\.together"):
        read_unit_costs(path)
    path.write_text("{")
    with pytest.raises(ArtefactError, match="the file"):
        read_unit_costs(path)
    with pytest.raises(ArtefactError, match="No such file"):
        read_unit_costs(tmp_path / "missing.json")


def test_made_up_passages_have_a_hundred_words_and_questions_differ() -> None:
    rows = synthetic_passages()
    assert {len(row.passage.text.split()) for row in rows} == {100}
    assert len({row.passage.id for row in rows}) == len(rows)
    asked = synthetic_questions()
    assert len(set(asked)) == len(asked) >= 400
