"""Trying the runtimes of a model, and keeping the fastest one."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import needs
import numpy as np
import pytest
from doubling_model import doubling_model
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs
from tenacious import LONG, growing

from winnow.errors import ArtefactError
from winnow.inference import openvino
from winnow.inference.options import InferenceOptions, Runtime
from winnow.inference.runtime import open_session
from winnow.inference.runtime_chooser import ChosenBy, RuntimeChoice, RuntimeChooser
from winnow.inference.runtime_timer import TimedSession, run_in_turns
from winnow.inference.session import Inputs, Outputs, Session, model_inputs
from winnow.inference.stop_signal import StopSignal
from winnow.telemetry.runtimes import RuntimeMetrics

INPUTS = model_inputs([101] * 4, [0] * 4)


class Machine(ManualClock):
    """A clock, and the processor time that was spent."""

    spent = 0.0

    def cpu(self) -> float:
        return self.spent

    def work(self, seconds: float, waiting: float) -> None:
        """Spends `seconds`, and `waiting` more while other processes have the processor."""
        self.spent += seconds
        self.advance(seconds + waiting)


class Fake:
    """A session whose runs take a fixed time, or fail from one run on."""

    def __init__(
        self,
        machine: Machine,
        seconds: float,
        fails_at: int | None = None,
        first: float = 0.0,
        waiting: float = 0.0,
    ) -> None:
        self._machine, self._seconds, self._fails_at = machine, seconds, fails_at
        self._first, self._waiting = first, waiting
        self.ran: list[float] = []

    def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
        if len(self.ran) == self._fails_at:
            raise RuntimeError("no such kernel")
        self._machine.work(self._seconds + (0.0 if self.ran else self._first), self._waiting)
        self.ran.append(self._machine.now)
        return []


class Chosen:
    """Chooses by a manual clock, and remembers."""

    def __init__(self) -> None:
        self.clock = Machine()
        self.choices: list[RuntimeChoice] = []
        self.choosing = RuntimeChooser(
            self.choices.append, seconds=1.0, clock=self.clock, cpu=self.clock.cpu
        )

    def between(self, **runtimes: Session | Exception) -> Session:
        def opening(each: Session | Exception) -> Callable[[], Session]:
            def open_() -> Session:
                if isinstance(each, Exception):
                    raise each
                return each

            return open_

        ways = {name: opening(each) for name, each in runtimes.items()}
        return self.choosing.open("reader.onnx", ways, INPUTS)


@pytest.fixture
def chosen() -> Chosen:
    return Chosen()


def test_the_faster_one_is_kept_and_both_times_are_told(chosen: Chosen) -> None:
    slow, fast = Fake(chosen.clock, 0.02), Fake(chosen.clock, 0.01)
    assert chosen.between(onnxruntime=slow, openvino=fast) is fast
    [choice] = chosen.choices
    assert (choice.runtime, choice.by) == ("openvino", ChosenBy.MEASURED)
    assert choice.milliseconds == {"onnxruntime": 20.0, "openvino": 10.0}
    assert "takes 50% of the time of onnxruntime" in choice.why


def test_the_first_one_is_kept_where_the_other_is_little_faster(chosen: Chosen) -> None:
    first, other = Fake(chosen.clock, 0.0200), Fake(chosen.clock, 0.0185)
    assert chosen.between(openvino=first, onnxruntime=other) is first
    [choice] = chosen.choices
    assert (choice.runtime, choice.by) == ("openvino", ChosenBy.MEASURED)
    assert "no other saves 10%" in choice.why


def test_who_has_to_wait_for_the_processor_is_no_slower(chosen: Chosen) -> None:
    """Other processes delay a runtime that passes its work to another thread more than one that does not."""
    held_up = Fake(chosen.clock, 0.02, waiting=0.1)
    assert chosen.between(openvino=held_up, onnxruntime=Fake(chosen.clock, 0.06)) is held_up
    assert chosen.choices[0].milliseconds == {"openvino": 20.0, "onnxruntime": 60.0}


def test_a_slow_first_run_does_not_count(chosen: Chosen) -> None:
    first, other = Fake(chosen.clock, 0.01, first=5.0), Fake(chosen.clock, 0.02)
    assert chosen.between(openvino=first, onnxruntime=other) is first
    assert chosen.choices[0].milliseconds["openvino"] == 10.0


def test_measuring_ends_after_its_time_and_runs_in_turns(chosen: Chosen) -> None:
    one, other = Fake(chosen.clock, 0.01), Fake(chosen.clock, 0.01)
    began = chosen.clock.now
    chosen.between(openvino=one, onnxruntime=other)
    assert chosen.clock.now - began == pytest.approx(1.02, abs=0.03)
    assert len(one.ran) == len(other.ran)
    turns = sorted([(at, "one") for at in one.ran] + [(at, "other") for at in other.ran])
    names = [name for _, name in turns]
    # they change places after each round, so that neither always follows the other
    assert names[:6] == ["one", "other", "other", "one", "one", "other"]


@pytest.mark.parametrize(("seconds", "runs"), [(2.0, 4), (30.0, 2)])
def test_a_slow_model_has_three_counted_runs_and_the_slowest_one(
    chosen: Chosen, seconds: float, runs: int
) -> None:
    one, other = Fake(chosen.clock, seconds), Fake(chosen.clock, 1.0)
    assert chosen.between(openvino=one, onnxruntime=other) is other
    assert len(one.ran) == len(other.ran) == runs


HANGS = """
import sys, threading
from winnow.inference.runtime_chooser import RuntimeChooser
def hang(): threading.Event().wait()
chooser = RuntimeChooser(print, hang_seconds=float(sys.argv[1]))
chooser.open("reader.onnx", {"openvino": hang, "onnxruntime": hang}, [])
"""


def ended_after(seconds: float) -> "subprocess.CompletedProcess[str]":
    """A process whose model may hang for `seconds`, once it has ended."""
    command = [sys.executable, "-c", HANGS, str(seconds)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)


def test_a_runtime_that_hangs_ends_the_process_which_says_where() -> None:
    for seconds in growing(0.5):
        ended = ended_after(seconds)
        assert ended.returncode == 1
        if "in hang" in ended.stderr:
            break
    assert "choose another one with --runtime" in ended.stdout + ended.stderr


def test_what_cannot_be_opened_leaves_the_other_one_and_nothing_is_measured(
    chosen: Chosen,
) -> None:
    other = Fake(chosen.clock, 0.01)
    assert chosen.between(openvino=ArtefactError("no such op"), onnxruntime=other) is other
    [choice] = chosen.choices
    assert (choice.runtime, choice.by) == ("onnxruntime", ChosenBy.ONLY)
    assert choice.why == "openvino cannot run it: no such op"
    assert other.ran == []


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_what_cannot_run_leaves_the_other_one_whenever_it_fails(
    chosen: Chosen, fails_at: int
) -> None:
    """Some graphs fail only once the shape of a run before is kept."""
    broken, other = Fake(chosen.clock, 0.001, fails_at), Fake(chosen.clock, 0.01)
    assert chosen.between(openvino=broken, onnxruntime=other) is other
    assert chosen.choices[0].faults == {"openvino": "no such kernel"}
    assert len(other.ran) <= fails_at + 1, "there is nothing to compare any more"


def test_what_nobody_can_open_is_an_error(chosen: Chosen) -> None:
    broken = ArtefactError("model.onnx cannot be opened")
    with pytest.raises(ArtefactError, match=r"model\.onnx cannot be opened"):
        chosen.between(openvino=ArtefactError("no"), onnxruntime=broken)
    assert chosen.choices == []


def test_a_model_that_refuses_the_made_up_input_is_opened_by_the_flags(chosen: Chosen) -> None:
    first, other = Fake(chosen.clock, 0.01, 0), Fake(chosen.clock, 0.01, 0)
    assert chosen.between(openvino=first, onnxruntime=other) is first
    assert chosen.choices[0].by is ChosenBy.FLAGS


def test_what_is_not_taken_is_let_go_before_the_model_is_used(chosen: Chosen) -> None:
    alive: list[weakref.ref[Fake]] = []

    def opening(seconds: float) -> Callable[[], Session]:
        def open_() -> Session:
            session = Fake(chosen.clock, seconds)
            alive.append(weakref.ref(session))
            return session

        return open_

    gc.disable()  # it must not have to wait for the next collection
    try:
        ways = {"openvino": opening(0.02), "onnxruntime": opening(0.01)}
        kept = chosen.choosing.open("reader.onnx", ways, INPUTS)
        assert [each() for each in alive] == [None, kept]
    finally:
        gc.enable()


def test_an_interruption_in_the_middle_goes_up_and_nothing_is_told(chosen: Chosen) -> None:
    class Interrupted(Fake):
        def run(self, inputs: Inputs, stop: StopSignal | None = None) -> Outputs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chosen.between(openvino=Fake(chosen.clock, 0.01), onnxruntime=Interrupted(chosen.clock, 1))
    assert chosen.choices == []


def test_times_are_those_of_counted_runs() -> None:
    clock = Machine()
    timed = [TimedSession("a", Fake(clock, 0.25, first=9.0)), TimedSession("b", Fake(clock, 0.5))]
    run_in_turns(timed, INPUTS, 1.0, clock, clock.cpu)
    assert [each.seconds for each in timed] == [[0.25] * 3, [0.5] * 3]


def test_choices_are_in_the_metrics_and_in_the_log_if_there_was_one() -> None:
    registry, clock = CollectorRegistry(), Machine()
    told = partial(RuntimeMetrics(registry).record_choice, "small")
    choosing = RuntimeChooser(told, clock=clock, cpu=clock.cpu)
    with capture_logs() as logged:
        choosing.report("encoder.onnx", "onnxruntime", ChosenBy.ONLY)
        assert logged == []
        slow, fast = Fake(clock, 0.02), Fake(clock, 0.01)
        ways = {"onnxruntime": lambda: slow, "openvino": lambda: fast}
        choosing.open("reader.onnx", ways, INPUTS)
    trying, line = logged
    assert (trying["event"], trying["runtimes"]) == ("trying runtimes", ["onnxruntime", "openvino"])
    assert line["event"] == "runtime chosen"
    assert (line["runtime"], line["model"], line["bundle"]) == ("openvino", "reader.onnx", "small")
    assert (line["onnxruntime_ms"], line["openvino_ms"]) == (20.0, 10.0)
    page = generate_latest(registry).decode()
    for labels in (
        'bundle="small",chosen_by="only",model="encoder.onnx",runtime="onnxruntime"',
        'bundle="small",chosen_by="measured",model="reader.onnx",runtime="openvino"',
    ):
        assert f"winnow_model_runtime_info{{{labels}}} 1.0" in page


needs_openvino = pytest.mark.skipif(not openvino.installed(), reason=needs.OPENVINO)


@needs_openvino
def test_a_float_model_is_tried_in_both_runtimes_and_runs_in_the_one_taken(
    doubling: Path,
) -> None:
    choices: list[RuntimeChoice] = []
    options = InferenceOptions(chooser=RuntimeChooser(choices.append, seconds=0.05))
    session = open_session(doubling, ["doubled"], "fp32", options, sample_inputs=INPUTS)
    [choice] = choices
    assert choice.by is ChosenBy.MEASURED
    assert set(choice.milliseconds) == {"onnxruntime", "openvino"}
    np.testing.assert_allclose(session.run(model_inputs([3, 4], [0, 0]))[0], [[6, 8]])


@pytest.mark.parametrize(
    ("asked", "precision", "by"),
    [
        (Runtime.ONNXRUNTIME, "fp32", ChosenBy.SETTING),
        (Runtime.ONNXRUNTIME, "int8", ChosenBy.SETTING),
        (Runtime.AUTO, "int8", ChosenBy.ONLY),
    ],
)
def test_what_was_named_or_is_the_only_one_is_not_measured(
    asked: Runtime, precision: str, by: ChosenBy, doubling: Path
) -> None:
    def clock() -> float:
        raise AssertionError("something was timed")

    choices: list[RuntimeChoice] = []
    options = InferenceOptions(runtime=asked, chooser=RuntimeChooser(choices.append, clock=clock))
    open_session(doubling, ["doubled"], precision, options, sample_inputs=INPUTS)
    assert choices == [RuntimeChoice("model.onnx", "onnxruntime", by)]


@needs_openvino
def test_without_a_usual_input_the_flags_decide(doubling: Path) -> None:
    """As for readers whose states are stored."""
    choices: list[RuntimeChoice] = []
    options = InferenceOptions(chooser=RuntimeChooser(choices.append))
    open_session(doubling, ["doubled"], "fp32", options)
    assert [each.by for each in choices] == [ChosenBy.FLAGS]


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return doubling_model(tmp_path / "model.onnx")
