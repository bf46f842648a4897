"""Reading with question and passage apart: stored or computed, the logits are the same."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_split_reader import APART, ENTRY, SPECIAL, LowerSession, UpperSession, lower
from numpy.typing import NDArray
from pydantic import ValidationError

from winnow.bundle.manifest import SplitReaderEntry
from winnow.domain.passage import Passage
from winnow.inference.stop_signal import StopSignal
from winnow.reading.decode import best_span
from winnow.reading.lower_layers import LowerLayers
from winnow.reading.model import WindowLogits, max_question_tokens
from winnow.reading.passage_states import quantise
from winnow.reading.split_reader import SplitReader
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import Tokens

LENGTHS = [0, 1, 20, 61, 62, 63, 200]


def stored(tokens: int, title: int = 2) -> StoredPassage:
    text = Tokens(tuple(range(500, 500 + tokens)), tuple((n, n + 1) for n in range(tokens)))
    return StoredPassage(Passage("p", "", "." * tokens), tuple(range(9, 9 + title)), text)


def same(one: WindowLogits, other: WindowLogits) -> bool:
    return (
        (one.first, one.relevance) == (other.first, other.relevance)
        and np.array_equal(one.start, other.start)
        and np.array_equal(one.end, other.end)
    )


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("title", [0, 2, 40])
def test_stored_states_give_the_logits_that_computed_ones_give(tokens: int, title: int) -> None:
    passage, own = stored(tokens, title), lower()
    model = SplitReader(own, UpperSession())
    computed = list(model.run_windows((7, 8), passage))
    kept = list(model.run_windows((7, 8), replace(passage, states=own.passage_states(passage))))
    assert len(computed) == len(kept)
    assert all(map(same, computed, kept))


@pytest.mark.parametrize("tokens", [33, 34, 35])
def test_beside_the_longest_title_there_is_room_for_a_passage_or_the_bundle_is_refused(
    tokens: int,
) -> None:
    about = {**APART.model_dump(), "passage_tokens": tokens}
    if tokens < 35:
        with pytest.raises(ValidationError, match="greater than 34"):
            SplitReaderEntry.model_validate(about)
        return
    own = LowerLayers(
        LowerSession(), SPECIAL, ENTRY, SplitReaderEntry.model_validate(about), fingerprint=""
    )
    assert own.count_tokens(stored(tokens=3, title=40)) == 3 * tokens


@pytest.mark.parametrize("tokens", LENGTHS)
def test_windows_cover_the_passage_and_fit(tokens: int) -> None:
    session = LowerSession()
    windows = list(SplitReader(lower(session), UpperSession()).run_windows((7,), stored(tokens)))
    seen = {window.first + n for window in windows for n in range(len(window.start))}
    assert seen == set(range(tokens))
    _question, *halves = session.runs
    assert all(len(half) <= APART.passage_tokens for half in halves)
    assert all(half[-1] == 102 and half[2] == 102 for half in halves)


def test_with_stored_states_only_the_question_is_computed_and_only_once() -> None:
    session = LowerSession()
    own = lower(session)
    passages = [replace(each, states=own.passage_states(each)) for each in map(stored, LENGTHS)]
    session.runs.clear()
    model = SplitReader(own, UpperSession())
    for passage in passages:
        list(model.run_windows((7, 8), passage))
    assert session.runs == [[101, 7, 8, 102]]


class MetLowerSession(LowerSession):
    """Each run waits a little for another thread's; `met` if one came."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting, self.met = threading.Barrier(2), False

    def run(
        self, inputs: Mapping[str, NDArray[Any]], stop: StopSignal | None = None
    ) -> list[NDArray[np.float32]]:
        with suppress(threading.BrokenBarrierError):
            self._meeting.wait(timeout=0.1)
            self.met = True
        return super().run(inputs, stop)


def test_threads_that_begin_on_a_question_together_compute_its_states_once() -> None:
    session = MetLowerSession()
    passage = replace(stored(20), states=lower().passage_states(stored(20)))
    model = SplitReader(lower(session), UpperSession())
    together = threading.Barrier(2)

    def read() -> list[WindowLogits]:
        together.wait()
        return list(model.run_windows((7, 8), passage))

    with ThreadPoolExecutor(2) as threads:
        one, other = (each.result() for each in [threads.submit(read), threads.submit(read)])
    assert not session.met
    assert session.runs == [[101, 7, 8, 102]]
    assert all(map(same, one, other))


def test_states_of_another_number_of_tokens_are_computed_again() -> None:
    passage, own = stored(20), lower()
    model = SplitReader(own, UpperSession())
    other = quantise(np.ones((5, APART.width), np.float32))
    (found,) = model.run_windows((7,), replace(passage, states=other))
    (computed,) = model.run_windows((7,), passage)
    assert same(found, computed)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_window_whose_states_are_not_finite_has_no_span(value: float) -> None:
    class Broken(LowerSession):
        def run(self, inputs, stop=None):  # type: ignore[no-untyped-def]
            states = super().run(inputs, stop)[0]
            if inputs["token_type_ids"][0, 0]:
                states[0, :, 0] = value
            return [states]

    windows = SplitReader(lower(Broken()), UpperSession()).run_windows((7, 8), stored(20))
    assert [best_span(each.start, each.end, 10) for each in windows] == [None]


def test_a_question_may_be_as_long_as_there_are_places_before_the_passage() -> None:
    assert max_question_tokens(ENTRY) == APART.passage_position - 2
