"""Operating points, their figures, and the choice among them."""

import io
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from whole_bundle import WHOLE

from winnow.cli.output import to_json
from winnow.cli.pareto import run as running
from winnow.cli.pareto.cli import _advice
from winnow.cli.pareto.figures import PointFigures, compute_point_figures, pareto_front, recommend
from winnow.cli.pareto.outcome import JudgedReply, append_replies, load_replies, measurement_digest
from winnow.cli.pareto.point import (
    Deployment,
    OperatingPoint,
    grid_points,
    lever_points,
    timed_only_points,
    untuned_deployment,
)
from winnow.cli.pareto.report import failure_lines, plot, table, write_results
from winnow.cli.pareto.run import QuestionSet, _setups, measure_points
from winnow.cli.quantities import parse_milliseconds
from winnow.domain.question import Retriever
from winnow.domain.shard import INDEX_FILE
from winnow.errors import WinnowError
from winnow.labelled_questions import LabelledQuestion
from winnow.packaged import default_bundle
from winnow.telemetry.progress import StageProgress
from winnow.v1 import answer_pb2

SIZES = {"p": 48.0, "q": 48.0}


def outcome(
    point: str, number: int = 0, ms: float = 10.0, right: bool = True, file: str = "a"
) -> JudgedReply:
    return JudgedReply(
        point=point,
        questions=file,
        number=number,
        milliseconds=ms,
        exact_match=right,
        f1=float(right),
        read=5,
    )


def failed_outcome(point: str, number: int = 0, error: str = "", file: str = "a") -> JudgedReply:
    right = outcome(point, number, ms=0.0, right=False, file=file)
    return replace(right, read=0, failed=True, error=error)


def at(point: str, exact: float, p50: float) -> PointFigures:
    return PointFigures(
        point=point,
        exact_match=exact,
        by_file={"a": (exact, exact)},
        p50=p50,
        p95=2 * p50,
        mean=p50,
        read=5.0,
        needed=4.0,
        questions=10,
        failed=0,
        megabytes=48.0,
    )


planes = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=12).map(
    lambda rows: [at(str(n), float(exact), float(ms)) for n, (exact, ms) in enumerate(rows)]
)


@given(planes)
def test_every_point_is_on_the_front_or_beaten_by_one_that_is(plane: list[PointFigures]) -> None:
    best = [each for each in plane if each.point in pareto_front(plane)]
    assert best
    for each in plane:
        beaten = any(
            (b.exact_match or 0.0) >= (each.exact_match or 0.0)
            and b.p50 <= each.p50
            and (b.exact_match, b.p50) != (each.exact_match, each.p50)
            for b in best
        )
        assert (each in best) != beaten


def test_a_budget_of_latency_buys_the_most_accurate_within_it() -> None:
    plane = [at("slow", 60, 50), at("middle", 55, 20), at("fast", 40, 5)]
    assert recommend(plane, max_p95=40) == plane[1]
    assert recommend(plane, min_exact_match=50) == plane[1]
    assert recommend(plane) == plane[0]
    assert recommend(plane, max_p95=1) is None
    assert recommend(plane, max_p95=40, min_exact_match=58) is None


def test_files_count_alike_and_failures_count_as_wrong() -> None:
    many = [outcome("p", n, right=True) for n in range(90)]
    few = [outcome("p", n, right=False, file="b") for n in range(9)]
    failed = failed_outcome("p", 9, file="b")
    (found,) = compute_point_figures([*many, *few, failed], {"p": 48.0})
    assert found.exact_match == pytest.approx(50)
    assert (found.questions, found.failed) == (100, 1)
    assert found.p50 == 10


def test_needed_passages_are_counted_apart_from_passages_read_ahead() -> None:
    asked = [replace(outcome("p", 0), needed=1), replace(outcome("p", 1, ms=40.0), needed=4)]
    (found,) = compute_point_figures(asked, {"p": 48.0})
    assert (found.read, found.needed) == (5, 2.5)
    assert (found.p50, found.mean) == (10, 25)
    (unsaid,) = compute_point_figures([outcome("p")], {"p": 48.0})
    assert unsaid.needed == unsaid.read == 5


def test_a_torn_line_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    append_replies(path, [outcome("p", 0), outcome("p", 1)])
    append_replies(path, [outcome("p", 2)])
    path.write_text(path.read_text()[:-20])
    assert load_replies(path) == [outcome("p", 0), outcome("p", 1)]
    assert load_replies(tmp_path / "none") == []
    append_replies(path, [outcome("p", 3)])
    assert load_replies(path) == [outcome("p", 0), outcome("p", 1), outcome("p", 3)]


def test_a_question_that_is_asked_again_has_its_last_outcome(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    failed = replace(outcome("p", 0), failed=True, error="UNAVAILABLE: gone")
    append_replies(path, [failed, outcome("p", 1), outcome("p", 0)])
    assert load_replies(path) == [outcome("p", 0), outcome("p", 1)]


def test_an_outcome_is_of_one_question_one_index_and_one_bundle() -> None:
    asked = LabelledQuestion("Who?", ("Ada",))
    others = [LabelledQuestion("Why?", ("Ada",)), LabelledQuestion("Who?", ("Bob",))]
    digests = {measurement_digest(asked, "index bundle"), measurement_digest(asked, "other bundle")}
    digests |= {measurement_digest(each, "index bundle") for each in others}
    assert len(digests) == 4
    assert measurement_digest(asked, "index bundle") in digests


@pytest.mark.parametrize(
    ("files", "said"),
    [(["a/dev.jsonl", "b/dev.jsonl"], "two files of questions are called dev"),
     (["a/bare.jsonl"], "none of 1 question ")],
)  # fmt: skip
def test_equal_names_and_missing_answers_are_refused_before_anything_is_made(
    tmp_path: Path, files: list[str], said: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir()
        answers = [] if "bare" in name else ["Ada"]
        (tmp_path / name).write_text(json.dumps({"question": "Who?", "answers": answers}))
    points = grid_points(
        [default_bundle()], ["auto"], [Retriever.HYBRID], passages=[1], losses=[0.0]
    )
    out = tmp_path / "out"
    with pytest.raises(WinnowError, match=said):
        measure_points(points, tmp_path / "index", [tmp_path / name for name in files], 10, out)
    assert not out.exists()


def test_results_that_cannot_be_written_are_found_out_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    questions = tmp_path / "dev.jsonl"
    questions.write_text(json.dumps({"question": "Who?", "answers": ["Ada"]}))
    (tmp_path / "out" / "points.csv").mkdir(parents=True)
    points = grid_points(
        [default_bundle()], ["auto"], [Retriever.HYBRID], passages=[1], losses=[0.0]
    )
    with pytest.raises(WinnowError, match=r"cannot write .*points\.csv"):
        measure_points(points, tmp_path / "index", [questions], 10, tmp_path / "out")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["points.csv"]
    with pytest.raises(WinnowError, match="is not an index"):
        measure_points(points, tmp_path / "index", [questions], 10, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_failures_make_a_point_slow_and_not_recommended() -> None:
    """A time-out has no time; without it the other times would look fast."""
    failed = failed_outcome("q", error="DEADLINE_EXCEEDED: late")
    mostly = [replace(failed, number=n) for n in range(8)]
    found = compute_point_figures(
        [*mostly, outcome("q", 8, ms=1.0), outcome("p", 0, ms=50.0)], SIZES
    )
    by_point = {each.point: each for each in found}
    assert (by_point["q"].p50, by_point["q"].mean) == (math.inf, 1.0)
    assert pareto_front(found) == {"p"}
    assert recommend(found, max_p95=10) is None
    few = [replace(failed, number=n) for n in range(2)]
    (slow,) = compute_point_figures([*few, *(outcome("q", n, ms=1.0) for n in range(2, 10))], SIZES)
    assert (slow.p50, slow.p95) == (1.0, math.inf)
    (half,) = compute_point_figures(
        [failed, outcome("q", 1, ms=1.0), outcome("q", 2, ms=2.0)], SIZES
    )
    assert (half.p50, half.p95) == (2.0, math.inf)


@pytest.mark.parametrize(
    ("plane", "wanted", "said"),
    [
        ([at("slow", 60, 50), at("fast", 40, 5)], None, "--max-p95; the fastest one is fast"),
        (
            [at("slow", 60, 50), at("fast", 40, 5)],
            70.0,
            "no point reaches --min-exact-match; the most accurate one is slow",
        ),
        (
            [at("slow", 60, 50), at("fast", 40, 5)],
            50.0,
            "--min-exact-match is within --max-p95; the fastest one is slow",
        ),
        ([replace(at("timed", 0, 1), exact_match=None)], None, "no point has a known accuracy"),
        ([at("gone", 0, math.inf)], None, "no point has a known accuracy"),
    ],
)
def test_an_impossible_budget_is_answered_with_the_nearest_point(
    plane: list[PointFigures], wanted: float | None, said: str
) -> None:
    assert said in _advice(plane, None, wanted)


def test_an_outcome_of_other_settings_or_flags_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / INDEX_FILE).write_text('{"shards": 1}')
    plain, slow = Deployment("plain", WHOLE), untuned_deployment(WHOLE)
    points = [OperatingPoint(plain, 10), OperatingPoint(plain, 5), OperatingPoint(slow, 10)]
    about = _setups(points, tmp_path)
    assert about[points[0].name] == about[points[1].name] != about[points[2].name]
    assert about == _setups(points, tmp_path)
    monkeypatch.setenv("WINNOW_NODE_READER_THREADS", "1")
    assert about[points[0].name] != _setups(points, tmp_path)[points[0].name]


def test_a_reader_in_halves_is_refused_as_the_untuned_one_before_anything_starts() -> None:
    with pytest.raises(WinnowError, match="does not support padding"):
        untuned_deployment(default_bundle())


def test_an_outcome_without_states_is_not_reused_with_states(tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).write_text('{"shards": 1}')
    points = [OperatingPoint(Deployment(each.name, each), 10) for each in (WHOLE, default_bundle())]
    without = _setups(points, tmp_path)
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "states.json").write_text("{}")
    whole, halves = (point.name for point in points)
    now = _setups(points, tmp_path)
    assert now[halves] != without[halves]
    assert now[whole] == without[whole]


class FakeAnswerClient:
    """Gives every question the same answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, request: answer_pb2.AnswerRequest, _: float) -> answer_pb2.AnswerResponse:
        self.asked.append(request.question)
        return answer_pb2.AnswerResponse(answers=[answer_pb2.Answer(text="Ada")])


async def test_a_run_that_goes_on_starts_and_asks_only_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / INDEX_FILE).write_text('{"shards": 1}')
    plain, slow = (
        OperatingPoint(Deployment(name, default_bundle()), 10) for name in ("plain", "slow")
    )
    sets = [QuestionSet("dev", [LabelledQuestion(f"Who {n}?", ("Ada",)) for n in range(13)])]
    results, said, client = tmp_path / "outcomes.jsonl", io.StringIO(), FakeAnswerClient()
    started: list[set[str]] = []

    async def start(deployments: dict[str, Deployment], *_: object) -> dict[str, FakeAnswerClient]:
        started.append(set(deployments))
        return dict.fromkeys(deployments, client)

    monkeypatch.setattr(running, "_start", start)

    async def run(points: list[OperatingPoint]) -> list[JudgedReply]:
        client.asked.clear()
        with StageProgress(Console(file=said)) as progress:
            return await running.ask_points(points, sets, tmp_path, results, progress)

    first = await run([plain])
    assert len(first) == len(client.asked) == 13
    assert len(await run([plain, slow])) == 26
    assert len(client.asked) == 13
    append_replies(results, [replace(first[3], failed=True, error="UNAVAILABLE: gone")])
    assert [each.key for each in await run([plain])] == [each.key for each in first]
    assert client.asked == ["Who 3?"]
    assert await run([plain]) == load_replies(results)[:13]
    assert client.asked == []
    assert started == [{"plain"}, {"slow"}, {"plain"}, set()]
    lines = said.getvalue().splitlines()
    assert [line for line in lines if "to do" in line] == [
        f"asking: {left} to do" for left in (13, 13, 1, 0)
    ]
    assert [line.partition(" in ")[0] for line in lines if " of " in line] == [
        f"asking: {count} of {count} (100 %)" for count in (13, 26, 13, 13)
    ]


def test_a_point_that_always_failed_says_why_and_has_no_times() -> None:
    failed = failed_outcome("p", error="UNAVAILABLE: gone")
    (found,) = compute_point_figures([failed], {"p": 48.0})
    values = json.loads(json.dumps(to_json(found), allow_nan=False))
    assert (values["p50"], values["errors"]) == (None, {"UNAVAILABLE": 1})
    assert list(failure_lines([found])) == ["p: 1 failed: UNAVAILABLE: gone"]


def test_a_grid_has_every_combination_once() -> None:
    points = grid_points(
        [default_bundle()],
        ["auto", "onnxruntime"],
        list(Retriever),
        passages=[1, 10],
        losses=[0.0, 0.3],
    )
    assert len({point.name for point in points}) == len(points) == 2 * (4 + 2 + 2)


def test_all_but_hybrid_retrieval_promise_no_loss_which_a_front_node_would_refuse() -> None:
    points = grid_points([default_bundle()], ["auto"], list(Retriever), passages=[1], losses=[0.3])
    losses = {point.retriever: point.max_loss for point in points}
    assert losses == {Retriever.DENSE: 0.0, Retriever.SPARSE: 0.0, Retriever.HYBRID: 0.3}


def test_the_untuned_point_is_asked_few_questions_and_timed_only() -> None:
    brief = OperatingPoint(untuned_deployment(WHOLE), 10, brief=True)
    whole = OperatingPoint(Deployment("whole", default_bundle()), 10)
    questions = QuestionSet("dev", [LabelledQuestion(f"Who is {n}?", ("Ada",)) for n in range(25)])
    blocks = list(questions.blocks([brief, whole]))
    asked = {
        point.name: [number for who, block in blocks if who is point for number in block]
        for point in (brief, whole)
    }
    assert asked == {brief.name: [0, 10, 20], whole.name: list(range(25))}
    assert timed_only_points([brief, whole]) == {brief.name}


def test_the_story_of_the_levers_ends_with_the_last_bundle_and_stopping(tmp_path: Path) -> None:
    small = tmp_path / "small"
    shutil.copytree(default_bundle(), small)
    points = lever_points([WHOLE, small], threads=4, passages=10, fewer=3, max_loss=0.3)
    first, last = points[0].deployment, points[-1].deployment
    assert "--pad-to" in first.front
    assert first.node[-2:] == ("--reader-threads", "1")
    assert last.bundle == small
    assert "--pad-to" not in last.node
    assert [bool(point.max_loss) for point in points] == [False] * (len(points) - 1) + [True]
    asked = [(point.passages, point.retriever) for point in points]
    assert asked[-2:] == [(3, Retriever.HYBRID)] * 2
    assert set(asked[:-2]) == {(10, Retriever.DENSE)}
    assert len({point.name for point in points}) == len(points)


def test_figures_are_written_and_drawn(tmp_path: Path) -> None:
    found = compute_point_figures(
        [outcome("p", 0), outcome("q", 0, ms=20.0, right=False)], {"p": 48.0, "q": 9}
    )
    write_results(found, tmp_path)
    plot(found, tmp_path / "pareto.png")
    assert (tmp_path / "points.csv").read_text().splitlines()[1].startswith("p,100.00")
    assert (tmp_path / "points.json").stat().st_size
    assert (tmp_path / "pareto.png").read_bytes().startswith(b"\x89PNG")


def test_random_weights_have_a_latency_and_no_accuracy(tmp_path: Path) -> None:
    found = compute_point_figures(
        [outcome("p", 0), outcome("random", 0, ms=1.0)], {"p": 48.0, "random": 48.0}, {"random"}
    )
    assert [(each.point, each.exact_match, each.on_front) for each in found] == [
        ("p", 100.0, True),
        ("random", None, False),
    ]
    assert recommend(found, max_p95=5) is None
    write_results(found, tmp_path)
    plot(found, tmp_path / "pareto.png")
    assert "random,,,,1.00" in (tmp_path / "points.csv").read_text()


@pytest.mark.parametrize(("columns", "seen"), [(80, False), (160, True)])
def test_a_table_shows_whole_names_and_figures_in_any_terminal(columns: int, seen: bool) -> None:
    slow = replace(at("untuned: random-base fp32/int8, padded", 0, 3280.04), exact_match=None)
    out = io.StringIO()
    found = [at("stops when safe", 50, 27.2), slow]
    Console(file=out, width=columns).print(table(found, columns, compare=slow))
    said = out.getvalue()
    words = ["3280.0", "6560.1", "120.6", "untuned:", "random-base", "p50 ratio"]
    assert [word for word in words if word not in said] == []
    assert ("by file" in said) == seen
    assert max(map(len, said.splitlines())) <= columns


@pytest.mark.parametrize(("text", "value"), [("50ms", 50), ("0.2s", 200), ("50", 50)])
def test_durations_have_units(text: str, value: float) -> None:
    assert parse_milliseconds("--p99", text) == value


@pytest.mark.parametrize("text", ["soon", "ms", "5 minutes", "nan", "infs", "-1ms", "0"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_milliseconds("--p99", text)
