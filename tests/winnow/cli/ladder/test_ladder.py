"""The ladder, with encoders so small that its steps take seconds."""

import importlib.util
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tenacious import LONG
from typer.testing import CliRunner

from winnow.cli.commands import build_app
from winnow.cli.ladder import making, texts
from winnow.cli.ladder.cli import _show, plot
from winnow.cli.ladder.model import LadderStepModel
from winnow.cli.ladder.run import LadderPlan, measure_steps, step_results
from winnow.cli.ladder.steps import STEPS, EncoderShape, LadderStep, Precision
from winnow.cli.ladder.worker import WorkerResult
from winnow.cli.output import to_json
from winnow.errors import ArtefactError, UnavailableError
from winnow.telemetry.progress import StageProgress

SMALL = EncoderShape("small", 2, 32, 2)
PLAIN = LadderStep("plain", SMALL)
PADDED = LadderStep("padded", SMALL, pad_to=64)
HEADS = LadderStep("heads", SMALL, Precision.INT8, heads=3)
CACHED = LadderStep("cached", SMALL, Precision.INT8, heads=3, cached=True)
SMALL_STEPS = (PADDED, PLAIN, HEADS, CACHED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ladder")
    making.create_missing_models(directory, SMALL_STEPS, lambda _: None)
    return directory


def test_each_step_has_one_lever_more_and_the_same_texts_to_predict() -> None:
    names = [step.name for step in STEPS]
    assert len(names) == len(set(names)) == 7
    assert [step.predictions for step in STEPS] == [1] * 5 + [10] * 2


def test_models_are_made_once(place: Path) -> None:
    said: list[str] = []
    making.create_missing_models(place, SMALL_STEPS, said.append)
    assert said == []
    assert sorted(file.name for file in place.iterdir()) == [
        "head-32.onnx",
        "small-fp32.onnx",
        "small-int8.onnx",
    ]


def test_without_the_package_that_makes_models_its_extra_is_named(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match=r"\[ladder\]"):
        making.create_missing_models(tmp_path, SMALL_STEPS, lambda _: None)
    making.create_missing_models(place, SMALL_STEPS, lambda _: None)  # all there: not needed


def test_padding_is_masked_and_changes_no_value(place: Path) -> None:
    ids = (2000, 3000, 4000, 5000)
    plain, padded = LadderStepModel(place, PLAIN), LadderStepModel(place, PADDED)
    np.testing.assert_allclose(plain.states(ids), padded.states(ids), atol=1e-3)


def test_heads_share_one_encoding_and_a_known_text_has_none(place: Path) -> None:
    model, other = LadderStepModel(place, CACHED, entries=1), LadderStepModel(place, HEADS)
    assert model.predict((7, 8)) == model.predict((7, 8)) == other.predict((7, 8))
    assert len(other.predict((7, 8))) == 3
    assert (model.hits, other.hits) == (1, 0)
    model.predict((9,))
    model.predict((7, 8))
    assert model.hits == 1


def test_every_round_measures_every_step(place: Path) -> None:
    plan = LadderPlan(
        steps=SMALL_STEPS, workers=2, requests=20, rounds=2, seconds=LONG, distinct_texts=500
    )
    with StageProgress() as progress:
        found = measure_steps(plan, place, progress)
    assert [step.name for step in found] == ["padded", "plain", "heads", "cached"]
    assert {step.requests for step in found} == {40}
    assert all(len(step.rates) == 2 for step in found)
    assert [step.hit_rate is None for step in found] == [True, True, True, False]
    json.dumps(to_json(found), allow_nan=False)
    _show(found, plan)


def test_a_worker_that_cannot_load_its_model_says_why(tmp_path: Path) -> None:
    plan = LadderPlan(
        steps=(PLAIN,), workers=1, requests=1, rounds=1, seconds=1.0, distinct_texts=5
    )
    with StageProgress() as progress, pytest.raises(ArtefactError, match=r"small-fp32\.onnx"):
        measure_steps(plan, tmp_path, progress)


def test_factors_compare_steps_of_the_same_round() -> None:
    def done(seconds: float) -> list[WorkerResult]:
        return [WorkerResult([seconds] * 4, 4 * seconds, 0)] * 2

    slow, fast, heads = PADDED, PLAIN, HEADS
    found = step_results(
        (slow, fast, heads), [[done(8), done(4), done(4)], [done(2), done(1), done(1)]]
    )
    assert [step.rates for step in found] == [(0.25, 1.0), (0.5, 2.0), (1.5, 6.0)]
    assert [step.times_first for step in found] == [1, 2, 6]
    assert [step.times_before for step in found] == [1, 2, 3]
    assert found[0].p50_ms == 5_000


def test_the_ladder_is_drawn(tmp_path: Path) -> None:
    done = [WorkerResult([0.1] * 4, 0.4, 0)]
    path = tmp_path / "ladder.svg"
    plot(step_results((PADDED, PLAIN), [[done, done]]), path)
    assert "padded" in path.read_text()


def test_made_up_texts_are_as_long_as_those_of_clinc150() -> None:
    made = texts.synthetic_texts(20_000, Random(0))
    assert np.mean([len(ids) for ids in made]) == pytest.approx(9.0, abs=0.1)
    assert sum(texts.CLINC150.values()) == 23_700


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "hello there"}\n\n{"text": "hello", "label": "x"}\n'),
        ("b.csv", "label,text\nx,hello there\ny,hello\n"),
    ],
)
def test_texts_are_read_from_json_lines_and_csv(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert [len(ids) for ids in texts.read_texts(path)] == [2, 1]


@pytest.mark.parametrize("content", [b"", b'{"words": "hello"}\n', b"{nonsense", b"\xff\xfe\n"])
def test_a_file_without_texts_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=r"a\.jsonl"):
        texts.read_texts(path)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["bench", "classification"], "--rounds"),
        (["bench", "ladder"], "--rounds"),
        (["bench"], "--questions"),
    ],
)
def test_classification_is_measured_below_bench_by_both_names(
    words: list[str], option: str
) -> None:
    shown = CliRunner().invoke(build_app(words), [*words, "--help"], env={"COLUMNS": "100"})
    assert shown.exit_code == 0
    assert option in shown.output
